"""A TCP connection from another machine, as a socket here: the client of OpenSSH with -W.

Nothing runs on the other machine, and nothing stays there: its sshd opens the connection.

Source: ssh(1), "-W host:port"; openssh-portable V_9_2_P1, clientloop.c and channels.c (channel_input_open_failure: the
reason is the system's own text), serverloop.c (server_request_direct_tcpip).
"""

from __future__ import annotations

import errno
import os
import socket
import subprocess
import tempfile
from types import TracebackType
from typing import IO, Self

from openstack_prep.base import shell
from openstack_prep.base.errors import ConfigError
from openstack_prep.base.style import printable

LOGIN_SECONDS = 10
"""How long a login may take."""
REFUSALS = {
    os.strerror(number): number
    for number in (errno.ECONNREFUSED, errno.EHOSTUNREACH, errno.ENETUNREACH, errno.ETIMEDOUT)
}
"""Error numbers by the text with which sshd reports a failed connection: the system's own."""
FAILED = 255
"""ssh's exit code for an error of its own."""
FORWARDING = "stdio forwarding failed"


class SSHFailed(ConfigError):
    """ssh cannot connect or log in."""


class SSHTunnel:
    """A connection that the sshd of ``target`` opens; the socket that this context manager returns is one end of it."""

    def __init__(self, target: str, address: str, port: int) -> None:
        self.target = target
        at = f"[{address}]" if ":" in address else address
        settings = ("BatchMode=yes", "LogLevel=INFO", f"ConnectTimeout={LOGIN_SECONDS}")
        options = [word for setting in settings for word in ("-o", setting)]
        self.command = ["ssh", *options, "-W", f"{at}:{port}", "--", target]

    def __enter__(self) -> Self:
        self.socket, theirs = socket.socketpair()
        self.errors: IO[bytes] = tempfile.TemporaryFile()
        with theirs:
            try:
                self.process = subprocess.Popen(
                    self.command, stdin=theirs.fileno(), stdout=theirs.fileno(), stderr=self.errors
                )
            except OSError as error:
                raise ConfigError(f"--probe-from requires ssh on PATH: {error.strerror}") from None
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.socket.close()
        self.process.kill()
        self.process.wait()
        self.errors.close()

    def refusal(self) -> OSError | None:
        """Return why there is no connection, if it ended before it began; raises SSHFailed if the login failed."""
        try:
            ended = self.process.wait(timeout=1)
        except subprocess.TimeoutExpired:
            return None
        self.errors.seek(0)
        output = self.errors.read().decode(errors="replace")
        if ended != FAILED:
            return None
        number = next((number for text, number in REFUSALS.items() if text in output), None)
        if FORWARDING in output and number:
            return OSError(number, os.strerror(number))
        reason = printable("; ".join(output.strip().splitlines()[-2:])) or "it printed no reason"
        trial = shell.join(["ssh", self.target, "true"])
        raise SSHFailed(f"--probe-from {self.target}: ssh cannot open a connection there: {reason}; try {trial}")
