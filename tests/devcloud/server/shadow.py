"""Replaces what a module sees of another module, without touching that one."""


class Shadow:
    """A module with some names replaced."""

    def __init__(self, target, **names):
        self.__dict__.update(names, _target=target)

    def __getattr__(self, name):
        return getattr(self._target, name)
