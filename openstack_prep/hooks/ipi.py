"""Wrap ``openshift-install``: checks before it, floating IPs while it runs, address pairs after it."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

from openstack_prep.base import shell
from openstack_prep.base.errors import ConfigError, PrepError
from openstack_prep.download.installer_program import release_of
from openstack_prep.hooks import child_process
from openstack_prep.hooks.installation import Installation, InstallOptions, Outcome
from openstack_prep.hooks.pre_ipi import Ready
from openstack_prep.openshift.folder import Folder, clouds_file, environment
from openstack_prep.openshift.install_config import releases

PROGRAM = "openshift-install"
WITH_VALUE = ("--dir", "--log-level")


class CommandLine:
    """The installer's command line."""

    def __init__(self, words: Sequence[str]) -> None:
        if isinstance(words, str):
            raise ConfigError(f"the command {words!r} is a single string; pass a list: {words.split()}")
        if not words:
            raise ConfigError("no command given; pass one such as openshift-install create cluster")
        self.words = tuple(words)
        self.program = child_process.find_program(words[0])
        plain, self.folder = self._parted()
        pairs = set(pairwise(plain))  # the first may be a wrapper
        self.creates = ("create", "cluster") in pairs
        self.uses_config = any(first == "create" for first, _ in pairs)
        """Whether it deletes install-config.yaml, as ``create manifests`` does, too."""
        self.writes = self.uses_config or any(first == "destroy" for first, _ in pairs)
        """Whether it must be alone in its directory."""

    def _parted(self) -> tuple[list[str], Path | None]:
        plain, folder = [], None
        rest = iter(self.words[1:])
        for word in rest:
            name, equals, value = word.partition("=")
            if name in WITH_VALUE:
                value = value if equals else next(rest, "")
                folder = Path(value) if name == "--dir" else folder
            elif not word.startswith("-"):
                plain.append(word)
        return plain, folder

    def within(self, folder: Path | None) -> CommandLine:
        """Return the command with a --dir; raises ConfigError if it has a different one."""
        if folder is None:
            return self
        if self.folder is None:
            return CommandLine([*self.words, "--dir", str(folder)])
        if os.path.realpath(folder) != os.path.realpath(self.folder):
            raise ConfigError(
                f"the command has --dir {self.folder}, but install-config.yaml is in {folder}; use one directory"
            )
        return self

    @property
    def installer(self) -> Path | None:
        """The program, if it is the installer and not a wrapper."""
        return self.program if self.program.name.startswith(PROGRAM) else None

    def release(self, declared: str | None) -> str:
        """Return the release that will be installed; raises ConfigError if it is not the declared one."""
        found = release_of(self.installer) if self.installer else None
        if found and declared and not releases.is_same(found, declared):
            what = f"install-config.yaml is for {declared}, but {self.program} installs {found}"
            raise ConfigError(f"{what}; use the installer of that release, or correct release:")
        return found or declared or releases.name(releases.NEWEST)


def ipi(
    command: Sequence[str],
    *,
    ready: Ready | None = None,
    folder: str | Path | None = None,
    options: InstallOptions | None = None,
    wishes: InstallOptions | None = None,
    tell: Callable[[str], None] = print,
    jobs: int = 8,
) -> Outcome:
    """Run an installer's command with the work around ``create cluster``; return the outcome.

    ``command`` is the program and its arguments. ``ready`` is what pre_ipi returned; without it the install-config.yaml
    in ``folder`` is taken as it is there, and checked. ``folder`` is the --dir, unless the command names it.
    ``options`` are the addresses, and how it runs; ``wishes`` is its former name. Other commands (destroy cluster,
    wait-for ...) get the same environment, and metadata.json is kept. ``tell`` is given lines for people, also by
    another thread. ``jobs`` is how many requests are sent at a time.

    Raises NotReady if check finds errors, ConfigError, SpecError and CloudError for problems before the start,
    NoSuchProgram if there is no such command; later problems are in the outcome: ``raise_for_problems()`` stops a
    script.
    """
    options = options or wishes or InstallOptions()
    words = CommandLine(command).within(Path(folder) if folder else None).within(ready.folder if ready else None)
    place = Folder(words.folder or Path())
    if not words.creates:
        if options.all:
            given = f"{', '.join(options.all)}: `{shell.join(command)}` attaches and allows no addresses"
            raise ConfigError(
                f"{given}; these options only apply to create cluster; for an existing cluster, run post-ipi"
            )
        return _run_other_command(words, place, ready)
    release = words.release(ready.release if ready else None)
    if ready and options.ingress_floating_ip is None:
        options = replace(options, ingress_floating_ip=ready.ingress_floating_ip)
    with place.locked() as lock:
        run = Installation(place, release, words.installer, options, tell)
        run.prepare(ready.clouds_file if ready else clouds_file(), look=options.check and ready is None, jobs=jobs)
        return run.run(words.words, lock)


def _run_other_command(words: CommandLine, place: Folder, ready: Ready | None) -> Outcome:
    """Run another command; it may need no cloud, so it gets our own environment if none is found."""
    with place.locked() if words.writes else contextlib.nullcontext() as lock:
        try:
            variables = environment(place.cloud(), ready.clouds_file if ready else clouds_file())
        except PrepError:
            variables = dict(os.environ)
        if words.uses_config:
            place.keep_config()
        place.keep_metadata()  # destroy deletes it
        code, problem = child_process.run(words.words, variables, lock), ""
        try:
            place.keep_metadata()
        except PrepError as error:
            problem = str(error)
    return Outcome(code=code, problem=problem)
