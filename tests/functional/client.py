"""The ``openstack`` command, started once: its imports cost more than most of what it is told to do."""

from __future__ import annotations

import functools
import json
import os
import shlex
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

_LOOP = """
import contextlib, io, json, os, sys
import openstack.connection, openstackclient.network.client
from openstackclient.shell import main

def reply(asked):
    os.environ.clear()
    os.environ.update(asked["environment"])
    os.chdir(asked["folder"])
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        try:
            code = main(asked["words"])
        except SystemExit as end:  # of the parser
            code = end.code
    print(json.dumps([code, out.getvalue(), err.getvalue()]), flush=True)

for line in sys.stdin:
    child = os.fork()  # for the client keeps the identity that it began with
    if not child:
        reply(json.loads(line))
        os._exit(0)
    os.waitpid(child, 0)
"""


@functools.cache
def _started() -> subprocess.Popen[str]:
    """Return the process; it ends with ours, when nobody writes to it any more."""
    return subprocess.Popen([sys.executable, "-c", _LOOP], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)


def openstack(words: Sequence[str], environment: Mapping[str, str], folder: Path | None = None) -> str:
    """Run ``openstack WORDS`` with these variables besides ours, and return its output; insist that it goes well."""
    process = _started()
    assert process.stdin
    assert process.stdout
    asked = {"words": list(words), "environment": os.environ | environment, "folder": str(folder or Path.cwd())}
    print(json.dumps(asked), file=process.stdin, flush=True)
    reply = process.stdout.readline()
    assert reply, f"the client ended at {words}"
    code, out, err = json.loads(reply)
    assert code == 0, f"openstack {words}: {code}\n{out}\n{err}"
    return str(out)


def carry_out(fix: str, environment: Mapping[str, str], folder: Path | None = None, **words: str) -> None:
    """Run the commands of a remedy, as a shell would read them; ``words`` stand for those that it leaves open.

    A remedy that leaves a word open says so before its command: "name one: openstack ...".
    """
    fix = fix.partition(": ")[2] if words and not fix.startswith("openstack ") else fix
    for command in fix.partition("  # ")[0].split(" && "):
        first, *rest = shlex.split(command)
        assert first == "openstack"
        for open_word, given in words.items():
            rest = [each.replace(open_word, given) for each in rest]
        openstack(rest, environment, folder)
