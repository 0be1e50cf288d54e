"""The command's rooms: one file for a command, or a few that belong together.

Each has ``add(command)``; ``command(name, run, help, cloud=True)`` makes a parser, with the options of
one that speaks to a cloud (without one, ``data=True`` gives it --format), and ``run(options)`` returns the
exit code.  What needs time to import is imported where it is used.
"""
