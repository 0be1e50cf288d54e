"""A file of shell variables that select the cloud and the cluster for clients.

Source: POSIX, "Shell Command Language", for quoting and names.
"""

from __future__ import annotations

import io
import re
import shlex
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import ClassVar

from openstack_prep.base.codes import Code
from openstack_prep.base.errors import LoginBlocked, Mistake, PrepError
from openstack_prep.base.fields import File, Name, Text
from openstack_prep.base.file_lock import writer_after
from openstack_prep.base.given_file import read_text, unreadable
from openstack_prep.base.private_file import PRIVATE, mode, remove_file, write_private, write_shared
from openstack_prep.base.raw import Values
from openstack_prep.base.secret import Secret
from openstack_prep.cloud import clouds_yaml
from openstack_prep.cloud.cloud_run import CloudRun
from openstack_prep.cloud.entries import SELECTORS
from openstack_prep.core.model import Change, Context, Key, Observed, Resource
from openstack_prep.core.resource import Unguarded, WrittenFile
from openstack_prep.resources.files.client_login import UNUSABLE, ClientLogin, find_block, identity_in
from openstack_prep.resources.files.clouds_entry import InCloudsYaml, entry, folder_of
from openstack_prep.resources.files.marked_files import SECRET
from openstack_prep.resources.files.owned_file import foreign_file, is_up_to_date, refuse_file_of_others, unwritable
from openstack_prep.resources.identity import home


@dataclass(frozen=True, kw_only=True)
class EnvFile(Resource[CloudRun], Unguarded):
    """A file to source: ``. ./cluster.env`` selects the cloud for every client.

    Its first line is the ownership tag; a file without the tag is not managed by the spec and never overwritten. Plans
    never show the content of such a file, because an openrc may contain a password. Apply removes variables that
    others have added, as the plan shows; other lines stay. Destroy leaves both.
    """

    kind: ClassVar[str] = "env_file"
    implied: ClassVar[frozenset[str]] = frozenset({"mode"})

    path: File
    """The file to write."""
    cloud: Name | None = None
    """Entry of clouds.yaml to select (OS_CLOUD)."""
    clouds_yaml: File | None = None
    """The clouds.yaml that contains it (OS_CLIENT_CONFIG_FILE); default: the file to which this spec writes the entry.
    """
    kubeconfig: File | None = None
    """The cluster's kubeconfig (KUBECONFIG); it may not exist yet."""
    variables: Mapping[Name, Text] | None = None
    """Further variables; not for secrets, because plans show the values."""

    @property
    def name(self) -> str:
        return Path(self.path).name

    @property
    def scope(self) -> tuple[str, ...]:
        return folder_of(Path(self.path))

    def resolve(self, context: Context) -> Sequence[Resource]:
        written = (each.file for each in context.declared(InCloudsYaml) if each.cloud == self.cloud)
        path = next(written, None)
        return (self if self.clouds_yaml or not path else replace(self, clouds_yaml=str(path)),)

    def written_files(self, context: Context) -> Iterable[WrittenFile]:
        return (WrittenFile("path", self.path),)

    def needs(self) -> Iterable[Key]:
        return (entry(Path(self.clouds_yaml), self.cloud),) if self.clouds_yaml and self.cloud else ()

    def exports(self) -> dict[str, str]:
        files = {"OS_CLIENT_CONFIG_FILE": self.clouds_yaml, "KUBECONFIG": self.kubeconfig}
        paths = {name: str(Path(path).absolute()) for name, path in files.items() if path}
        return {**({"OS_CLOUD": self.cloud} if self.cloud else {}), **paths, **(self.variables or {})}

    def desired(self) -> Values:
        return {"variables": self.exports(), "mode": PRIVATE}

    def list_mistakes(self, context: Context) -> Iterable[Mistake]:
        for name in self.variables or ():
            if not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", name):
                what, fix = f"{name!r} is not a valid variable name", "use letters, digits and underscores"
                yield Mistake.about(self.key, what, fix, code=Code.SPEC_INVALID_VALUE, field="variables")

    def check(self, run: CloudRun, observed: Observed | None) -> Iterable[Mistake]:
        yield from unwritable(self, self.path, observed)
        if observed is not None and not observed.ours and not is_up_to_date(self, observed):
            yield foreign_file(self, self.path, observed.owner)

    def find_one(self, run: CloudRun) -> Observed | None:
        return self._observed(run) if Path(self.path).exists() else None

    def _observed(self, run: CloudRun) -> Observed:
        try:
            text = read_text(Path(self.path))
        except (OSError, UnicodeDecodeError) as error:
            raise PrepError(f"{self.path} {unreadable(error)}; choose another file, or remove this one") from error
        tag, wanted = text.partition("\n")[0], self.exports()
        ours = run.ownership.manages(self.name, tag) and home.owns_file(run, tag)
        # nobody knows what a variable holds that the spec does not name
        shown = {name for name in wanted if ours and not SECRET.search(name)}
        variables = {
            name: value if value == wanted.get(name) or name in shown else Secret(value)
            for name, value in _parse(text).items()
        }
        return Observed(
            id=self.path,
            ours=ours,
            managed_by=home.another_of_file(run, tag),
            values={"variables": variables, "mode": mode(Path(self.path))},
            outputs={"path": self.path},
        )

    def create(self, run: CloudRun) -> Observed:
        exports = (f"export {name}={shlex.quote(value)}" for name, value in self.exports().items())
        text = "\n".join((f"# {home.file_ownership(run).describe(self.name)}", *exports, ""))
        with writer_after(lambda: refuse_file_of_others(self, run, self.path), Path(self.path)) as (target, _):
            old = read_text(target) if target.exists() else ""
            write_private(target, text + _without(old, _parse(old)))
        try:
            self.check_login(run)
        except LoginBlocked as error:
            run.note(self.key, UNUSABLE.format(error))
        return self._observed(run)

    def check_login(self, run: CloudRun) -> None:
        """Log in as a client does that has read the file, if the variables matter or no spec manages the entry.

        Raises EntryUnusable, ConfigError, CloudError. Variables go before the entry (openstackclient, its options).
        """
        if (login := self._client_login()) and (login.options or clouds_yaml.OWNER not in login.entry):
            login.log_in(lambda: find_block(run, *identity_in(login.find().cloud.config.get("auth") or {})))

    def _client_login(self) -> ClientLogin | None:
        """Return how a client logs in that has read the file; None if it names no entry that exists."""
        if not (self.cloud and self.clouds_yaml):
            return None
        found = clouds_yaml.read(Path(self.clouds_yaml)).get(self.cloud)
        names = [name for name in self.variables or () if name.startswith("OS_") and name not in SELECTORS]
        options = {name.removeprefix("OS_").lower(): (self.variables or {})[name] for name in names}
        return ClientLogin(Path(self.clouds_yaml), self.cloud, found, (), options) if isinstance(found, dict) else None

    def update(self, run: CloudRun, observed: Observed, changes: Sequence[Change]) -> Observed:
        return self.create(run)

    def delete(self, run: CloudRun, observed: Observed) -> None:
        if not Path(self.path).exists():  # the lock would create a missing folder again
            return
        with writer_after(lambda: self.find_one(run), Path(self.path)) as (target, found):
            if found is None or not found.ours:
                return
            left = _without(read_text(target), self.exports())
            if left:
                write_shared(target, left)
                run.note(self.key, f"{self.path} stays with the lines that this spec has not written")
            else:
                remove_file(target)


def _without(text: str, variables: Iterable[str]) -> str:
    """Return a managed file without its ownership tag and some variables; empty if nothing is left."""
    names = frozenset(variables)
    left = "".join(each for each, name, _ in _statements(text.partition("\n")[2]) if name not in names)
    return left if left.strip() else ""


def _parse(text: str) -> dict[str, str]:
    """Return the variables that a file exports by statements of their own."""
    return {name: value for _, name, value in _statements(text) if name}


def _statements(text: str) -> Iterator[tuple[str, str, str]]:
    """Yield the statements of a file, each with name and value of the variable that it exports and nothing else."""
    waiting = ""
    for line in io.StringIO(text):
        is_closing = not waiting or "'" in line or '"' in line
        waiting += line
        if not is_closing:
            continue
        try:
            words = shlex.split(waiting, comments=True)
        except ValueError:  # a value with further lines
            continue
        exported = words[1] if len(words) == 2 and words[0] == "export" and "=" in words[1] else ""
        name, _, value = exported.partition("=")
        yield waiting, name, value
        waiting = ""
    if waiting:  # a quote that nothing closes, as in a here-document
        yield waiting, "", ""
