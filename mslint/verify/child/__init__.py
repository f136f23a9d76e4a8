"""What runs inside the child process: the only code of mslint that imports mindspore."""
