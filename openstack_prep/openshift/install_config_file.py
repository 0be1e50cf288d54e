"""The install-config.yaml of a cluster, and a copy of it, because the installer deletes it.

Source: the OpenShift installer's docs: it deletes its input, and keeps its own state in the same folder
until the cluster is destroyed (asset/store).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import ClassVar

import yaml

from openstack_prep.base.errors import Mistake, PlanRefused, PrepError
from openstack_prep.base.fields import File, is_address
from openstack_prep.base.file_lock import writer_after
from openstack_prep.base.formats.foreign_text import parse_yaml
from openstack_prep.base.given_file import read_text, unreadable
from openstack_prep.base.private_file import PRIVATE, mode, remove_file, write_private
from openstack_prep.base.raw import Raw, Values, rewrite
from openstack_prep.base.secret import HIDDEN, Secret
from openstack_prep.base.secret_forms import without_login
from openstack_prep.cloud.cloud_run import CloudRun
from openstack_prep.core.model import Change, Condition, Context, Key, Observed, Resource, Texts
from openstack_prep.core.observed import owner_text
from openstack_prep.core.resource import Unguarded, WrittenFile
from openstack_prep.openshift import install_config
from openstack_prep.openshift.install_config import FileContents, InstallConfigFields
from openstack_prep.openshift.install_config.document import compact, may_be_secret, nested
from openstack_prep.openshift.install_config.rules.contents import are_public_keys
from openstack_prep.openshift.install_config.rules.machines import image_format
from openstack_prep.openshift.installer import copy_of
from openstack_prep.resources.addresses.floating_ip import FloatingIP, given_address
from openstack_prep.resources.files.clouds_entry import folder_of
from openstack_prep.resources.files.owned_file import foreign_file, is_up_to_date, refuse_file_of_others, unwritable
from openstack_prep.resources.identity import home
from openstack_prep.resources.identity.in_project import InstallerInput
from openstack_prep.resources.image.image_fields import ImageFields
from openstack_prep.resources.lists import queries

GONE = Condition("(the file is gone)")
STATE = (".openshift_install_state.json", "metadata.json")
FLOATING = {"api_floating_ip": ("apiFloatingIP", "lbFloatingIP"), "ingress_floating_ip": ("ingressFloatingIP",)}
FILES = ("pull_secret_file", "ssh_key_file", "additional_trust_bundle_file")
URLS = ("proxy.httpProxy", "proxy.httpsProxy", "platform.openstack.clusterOSImage")
CONTENTS = {field.removesuffix("_file"): field for field in FILES}
"""The fields of a spec by what the rules call the contents of their files."""


@dataclass(frozen=True, kw_only=True)
class InstallConfig(InstallerInput, InstallConfigFields, Unguarded):
    """An install-config.yaml, and beside it a copy, install-config.yaml.kept.

    The installer deletes the file when it uses it.  While the installer's state is in the folder, the copy
    represents the file: apply does not write a file that would stop the next run of the installer, and refuses a
    spec that differs, because no install-config changes an existing cluster.  Without that state (the cluster was
    destroyed, or the file was deleted by hand) apply writes the file again, and destroy deletes the copy, which
    contains the pull secret.  The ownership tag is the first line; a file without it is never overwritten.
    """

    kind: ClassVar[str] = "install_config"
    product: ClassVar[str] = "OpenShift"
    installer: ClassVar[str] = "openshift-install"
    implied: ClassVar[frozenset[str]] = frozenset({"others", "mode", "kept"})

    path: File
    """The file to write; its folder is the --dir of the installer."""
    pull_secret_file: File
    """File of the pull secret, JSON."""
    ssh_key_file: File | None = None
    """File of SSH public keys for the user core of the machines."""
    additional_trust_bundle_file: File | None = None
    """File of CA certificates (PEM) that the cluster trusts."""

    @property
    def name(self) -> str:
        return Path(self.path).name

    @property
    def scope(self) -> tuple[str, ...]:
        return folder_of(Path(self.path))

    @property
    def file(self) -> Path:
        return Path(self.path)

    @property
    def kept(self) -> Path:
        return copy_of(self.file)

    # --- desired state --------------------------------------------------------------------

    def resolve(self, context: Context) -> Sequence[Resource]:
        """Return it with the addresses of the spec's floating IPs; unknown addresses follow after their creation."""
        declared = {each.name: each for each in self.of_project(context.declared(FloatingIP))}
        used = {name: declared[value] for name, value in self._floating().items() if value in declared}
        addresses: Values = {name: each.address for name, each in used.items() if each.address}
        network = self.external_network or next((each.external_network for each in used.values()), None)
        return (replace(self, **addresses, external_network=network),)

    @property
    def taken(self) -> frozenset[str]:
        return frozenset(() if self._consumed() else self._floating().values())

    @property
    def boots(self) -> tuple[str, str] | None:
        image, stream = self.cluster_os_image, self.os_image_stream
        return (image, stream) if image and stream else None

    def _floating(self) -> dict[str, str]:
        return {name: value for name in FLOATING if (value := getattr(self, name))}

    def _unresolved(self) -> dict[str, FloatingIP]:
        """Return the floating IPs that are given by name, by field."""
        names = {field: value for field, value in self._floating().items() if not is_address(value)}
        network = self.external_network or ""
        return {field: self.sibling(FloatingIP, name, external_network=network) for field, name in names.items()}

    def written_files(self, context: Context) -> Iterable[WrittenFile]:
        file = WrittenFile("path", str(self.file), in_folder_of="openshift-install")
        return (file, WrittenFile("path", str(self.kept)))

    def references(self) -> Iterable[FloatingIP]:
        return self._unresolved().values()

    def needs(self) -> Iterable[Key]:
        return [given_address(value) for value in self._floating().values() if is_address(value)]

    def contents(self) -> FileContents:
        """Return the contents of the files, None for those that cannot be read."""
        secret, key, bundle = (_text(getattr(self, name)) for name in FILES)
        return FileContents(
            pull_secret=None if secret is None else Secret(secret),
            ssh_key=None if key is None else key.strip(),
            additional_trust_bundle=bundle,
        )

    def source_files(self) -> Iterable[str]:
        return filter(None, (getattr(self, name) for name in FILES))

    def desired(self) -> Values:
        return {**_leaves(install_config.document(self, self.contents())), "others": (), "mode": PRIVATE, "kept": True}

    # --- actual state ---------------------------------------------------------------------

    def _consumed(self) -> bool:
        """Whether the installer has deleted it, and the cluster may exist."""
        state = any((self.file.parent / name).exists() for name in STATE)
        return not self.file.exists() and self.kept.exists() and state

    def find_one(self, run: CloudRun) -> Observed | None:
        path = self.file if self.file.exists() else self.kept
        if not path.exists():
            return None
        text = _read(path)
        managed = _is_managed(text, run)
        alone = path == self.kept and not self._consumed()
        if alone and not managed:
            return None
        leaves = self._with_names(run, _leaves(_parsed(text)))
        declared = self.desired()
        return Observed(
            id=str(path),
            ours=managed,
            managed_by=_other_spec(text, run),
            values={
                **leaves,
                "others": tuple(sorted(leaves.keys() - declared.keys())),
                "mode": GONE if alone else mode(path),
                "kept": not managed or (self.kept.exists() and _read(self.kept) == text),
            },
            outputs={"path": str(path)},
        )

    def _with_names(self, run: CloudRun, leaves: Values) -> Values:
        """Return the leaves of a file, with names of floating IPs where the spec uses names."""
        for field, floating_ip in self._unresolved().items():
            found = run.look(floating_ip)
            for name in FLOATING[field]:
                path = f"platform.openstack.{name}"
                if found is not None and leaves.get(path) == found.outputs["address"]:
                    leaves[path] = floating_ip.name
        return leaves

    # --- checks ---------------------------------------------------------------------------

    def list_mistakes(self, context: Context) -> Iterator[Mistake]:
        """Yield what the installer refuses; without the pull secret, which validation need not have, all the rest."""
        (resolved,) = self.resolve(context)
        assert isinstance(resolved, InstallConfig)
        unread = dict(self._unread())
        if unread.keys() - {"pull_secret_file"}:
            yield from (self._unreadable(field, path) for field, path in unread.items())
        unnamed: Values = dict.fromkeys(resolved._unresolved())  # apply creates them
        for mistake in install_config.mistakes(replace(resolved, **unnamed), self.contents()):
            field = CONTENTS.get(mistake.where, mistake.where)
            if field.replace("_policy", "_file") not in unread:
                what = f"{field}: {_in_the_spec(mistake.what)}"
                yield self.mistake(what, _in_the_spec(mistake.fix), mistake.code, field)
        yield from self._image_mistakes(context)

    def _image_mistakes(self, context: Context) -> Iterator[Mistake]:
        """Yield what is wrong with the image of the machines if the spec declares it; ``check`` asks Glance."""
        named = [each for each in context.declared(ImageFields) if each.name == self.cluster_os_image]
        for image in named if len(named) == 1 else ():  # of several projects, nobody knows which
            for mistake in image_format(image.name, image.output_format or image.disk_format):
                yield self.mistake(f"{mistake.where}: {mistake.what}", mistake.fix, mistake.code, mistake.where)

    def _unread(self) -> Iterator[tuple[str, str]]:
        """Yield the files that cannot be read, by their fields."""
        for field in FILES:
            path = getattr(self, field)
            if path is not None and _text(path) is None:
                yield field, path

    def _unreadable(self, field: str, path: str) -> Mistake:
        return self.mistake(f"{field}: {path} cannot be read", "create the file, or give another", field=field)

    def check(self, run: CloudRun, observed: Observed | None) -> Iterator[Mistake]:
        yield from unwritable(self, self.file, observed)
        yield from (self._unreadable(field, path) for field, path in self._unread() if field == "pull_secret_file")
        if not self._consumed():
            yield from self._check_volume_types(run)
        if copy := self._foreign_copy(run):
            yield copy
        elif observed is not None and not observed.ours:
            if not is_up_to_date(self, observed):
                yield foreign_file(self, observed.id, observed.owner)
        elif observed is not None and self._differs(observed) and self._consumed():
            what = f"the installer has used it, and {self.kept} differs from the spec"
            yield self.mistake(what, "destroy that cluster first, or give another file")

    def _check_volume_types(self, run: CloudRun) -> Iterator[Mistake]:
        """Yield the types of root volumes that Cinder does not have; the installer refuses them.

        Source: OpenShift installer pkg/asset/installconfig/openstack/validation/machinepool.go (ccad892ad9),
        validateVolumeTypes.
        """
        for name in ("machines", "control_plane", "compute"):
            volume = getattr(self, name).root_volume
            missing = sorted(set(volume.types) - queries.volume_types(run)) if volume and volume.types else ()
            for each in missing:
                what = f"{name}.root_volume.types: volume type {each} does not exist"
                yield self.mistake(what, "have it created, or correct the name")

    def _differs(self, observed: Observed) -> bool:
        return any(
            observed.values.get(name) != value for name, value in self.desired().items() if name not in ("mode", "kept")
        )

    def texts(self, observed: Observed) -> Texts:
        declared = {name: value for name, value in self.desired().items() if name not in self.implied}
        there = {name: observed.values[name] for name in declared if name in observed.values}
        both = [*declared.items(), *there.items()]
        secret = {name for name, value in both if isinstance(value, Secret)}
        others = dict.fromkeys(observed.values.get("others", ()), HIDDEN)  # nobody knows what they hold
        before, after = (install_config.dump(each) for each in (nested(there) | others, nested(declared)))
        return Texts(before, after, frozenset({*declared, "others"} - secret))

    # --- verbs ----------------------------------------------------------------------------

    def create(self, run: CloudRun) -> Observed:
        addresses: Values = {}
        for field, floating_ip in self._unresolved().items():
            found = run.look(floating_ip)
            if found is None:
                raise PrepError(f"{floating_ip.key} does not exist; {self.path} was not written")
            addresses[field] = found.outputs["address"]
        document = install_config.render(replace(self, **addresses), self.contents())
        text = f"# {home.file_ownership(run).describe(self.name)}\n{install_config.dump(document)}"
        with writer_after(lambda: self._refuse_others(run), self.file, self.kept):
            write_private(self.kept, text)
            if not self._consumed():
                write_private(self.file, text)
        observed = self.find_one(run)
        assert observed is not None
        return observed

    def _refuse_others(self, run: CloudRun) -> None:
        refuse_file_of_others(self, run, self.file)
        if copy := self._foreign_copy(run):
            raise PlanRefused([copy])

    def _foreign_copy(self, run: CloudRun) -> Mistake | None:
        """Return the refusal of a kept copy that this spec does not manage; None if there is none."""
        text = _read(self.kept) if self.kept.exists() else None
        if text is None or _is_managed(text, run):
            return None
        return foreign_file(self, self.kept, owner_text(_other_spec(text, run)))

    def update(self, run: CloudRun, observed: Observed, changes: Sequence[Change]) -> Observed:
        return self.create(run)

    def delete(self, run: CloudRun, observed: Observed) -> None:
        both = (self.file, self.kept)

        def find_managed() -> list[Path]:
            return [path for path in both if path.exists() and _is_managed(_read(path), run)]

        with writer_after(find_managed, *both) as (_, managed):
            for path in managed:
                remove_file(path)


def _in_the_spec(text: str) -> str:
    """Return a text with the names of file fields instead of those of their contents."""
    return re.sub(r"\b(pull_secret|ssh_key|additional_trust_bundle)\b", r"\1_file", text)


def _text(path: str | None) -> str | None:
    """Return the text of a file, None if it cannot be read."""
    try:
        return None if path is None else read_text(Path(path))
    except (OSError, UnicodeDecodeError):
        return None


def _read(path: Path) -> str:
    try:
        return read_text(path)
    except (OSError, UnicodeDecodeError) as error:
        raise PrepError(f"{path} {unreadable(error)}; give another file, or delete this one") from error


def _other_spec(text: str, run: CloudRun) -> str:
    """Return the name of the other spec that manages a file, if any."""
    return home.another_of_file(run, text.partition("\n")[0])


def _is_managed(text: str, run: CloudRun) -> bool:
    tag = text.partition("\n")[0]
    return run.ownership.owns(tag) and home.owns_file(run, tag)


def _parsed(text: str) -> Raw:
    """Return a document, an empty one if it is not YAML."""
    try:
        found = parse_yaml(text)
    except yaml.YAMLError:
        return {}
    return found if isinstance(found, Mapping) else {}


def _leaves(document: Raw, prefix: str = "") -> Values:
    """Return the values of a document by dotted path; secrets as Secret."""
    found: Values = {}
    for name, value in document.items():
        path = f"{prefix}{name}"
        if isinstance(value, Mapping):
            found |= _leaves(value, f"{path}.")
        elif isinstance(value, list) and len(value) == 1 and isinstance(value[0], Mapping):
            found |= _leaves(value[0], f"{path}[].")
        else:
            found[path] = _hidden(path, value)
    return found


def _hidden(path: str, value: object) -> object:
    """Return a value; as Secret if it is a pull secret, a URL with a login, or a key that is not public."""
    if path == "pullSecret":
        return compact(value if isinstance(value, Secret) else Secret(str(value)))
    if path == "sshKey" and not are_public_keys(str(value)):
        return Secret(str(value))
    if path == "additionalTrustBundle" and "PRIVATE KEY" in str(value):
        return Secret(str(value))
    if path in URLS and may_be_secret(str(value)):
        return Secret(str(value))
    # the installer takes no login elsewhere, but somebody may have written one by hand, such as at a mirror
    return rewrite(value, lambda part: without_login(part) if isinstance(part, str) else part)
