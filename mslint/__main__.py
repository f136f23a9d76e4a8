"""``python -m mslint``."""

from mslint.shadowing import drop_working_directory

drop_working_directory()

from mslint.cli import main  # noqa: E402

if __name__ == "__main__":
    raise SystemExit(main())
