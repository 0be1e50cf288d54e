"""A command line that cannot be parsed."""

from __future__ import annotations

from openstack_prep.base.diagnostic import Diagnostic
from openstack_prep.base.errors import ConfigError


class UsageError(ConfigError):
    """The command line cannot be parsed."""

    def __init__(self, program: str, message: str) -> None:
        self.program, self.message = program, message
        self.command = program.partition(" ")[2]
        super().__init__(f"{self.command}: {message}" if self.command else message)

    @property
    def diagnostics(self) -> tuple[Diagnostic, ...]:
        fix = f"{self.program} --help lists {'the options' if self.command else 'commands and options'}"
        return (Diagnostic(code=self.code, where=self.command, what=self.message, fix=fix),)
