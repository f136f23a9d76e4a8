"""Following a program without running it: the walk, which the packages ``networks`` and ``rehearsal`` share.

``follower`` walks statements and expressions, ``purpose`` lists what a purpose has to say to that, ``values`` holds what
every purpose knows of values.
"""
