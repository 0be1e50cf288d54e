"""The spec for an install-config.yaml that somebody has, and the proof that the spec renders the same file.

Source: the OpenShift installer's defaults (types/defaults/machinepools.go: hyperthreading Enabled, architecture
amd64), and ``fields`` for what a spec can express.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import MISSING, Field, dataclass, fields, is_dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

from openstack_prep.base.diagnostic import Diagnostic, errors
from openstack_prep.base.errors import Mistake
from openstack_prep.base.fields import is_address
from openstack_prep.base.formats import yaml_text
from openstack_prep.base.private_file import write_private
from openstack_prep.base.raw import Values, rewrite
from openstack_prep.base.secret_forms import without_login
from openstack_prep.base.style import printable
from openstack_prep.core.model import Context
from openstack_prep.openshift.check.preflight import check_file
from openstack_prep.openshift.install_config import (
    FileContents,
    InstallConfigFields,
    InstallConfigValues,
    document,
    findings,
    read,
)
from openstack_prep.openshift.install_config.document import may_be_secret
from openstack_prep.openshift.install_config.fields import FIELDS, INNER
from openstack_prep.openshift.install_config.paths import value_of
from openstack_prep.openshift.install_config.reading import is_deprecated
from openstack_prep.openshift.install_config.rules.contents import content_mistakes
from openstack_prep.openshift.install_config_file import CONTENTS, InstallConfig
from openstack_prep.spec import load_spec
from openstack_prep.spec.substitution import escape

SPEC = "spec.yaml"
FILES = {"pull_secret": "pull-secret.json", "ssh_key": "ssh-key.pub", "additional_trust_bundle": "ca-bundle.pem"}
"""The file of each content; a spec refers to files, and contains none of this."""
VARIABLES = "proxies.yaml"
"""Values of the variables for URLs with a login or a query, of proxies and of the image."""
DEFAULTS = {"architecture": "amd64", "hyperthreading": "Enabled", "kind": "InstallConfig", "credentialsmode": ""}
"""What the installer takes for a field that the file does not have, by the field's name in lowercase letters."""
IGNORED = ("metadata.creationtimestamp",)
POOL = "controlplane.name", "master"
"""The name of the pool of control plane machines, of which the installer makes those of machines; and a spec's."""
EMPTY: tuple[object, ...] = (None, "", [], {})


@dataclass(frozen=True, kw_only=True)
class SpecImport:
    """A spec for an install-config.yaml, and what came of the comparison."""

    sections: Mapping[str, Any]
    """The sections of the spec as plain data, without logins, which the installer takes in URLs of proxies alone."""
    files: Mapping[str, str]
    """The texts of the files that the spec refers to, by name; they are secret."""
    left_out: tuple[Mistake, ...]
    """What the file says and the spec cannot: place, reason, and what to do."""
    refused: tuple[Diagnostic, ...]
    """What the installer refuses in the file at this release."""
    differences: tuple[str, ...]
    """Fields of the file that the spec renders with another value; none, unless this program is wrong."""

    def __str__(self) -> str:
        """Return the spec as YAML, with comments on what it does not contain."""
        notes = [f"not expressed: {mistake}" for mistake in self.left_out]
        notes += [
            f"the installer refuses: {diagnostic.where}: {diagnostic.what}; {diagnostic.fix}"
            for diagnostic in self.refused
        ]
        lines = (f"# {printable(note)}" for note in notes)
        return "\n".join([yaml_text.dump(self.sections).rstrip(), *lines]) + "\n"


def import_install_config(path: str | Path, release: str) -> SpecImport:
    """Return the spec for an install-config.yaml of a release such as "4.18".

    The spec refers by name to flavors, images, networks and subnets, which must exist unless somebody adds what apply
    needs to create them, and it allocates the floating IPs.  Contents of files stay outside of the spec.  Raises
    SpecError for a file that the installer could not read.
    """
    given = InstallConfigValues(Path(path))
    cluster, contents = read(given, release)
    texts = _texts(contents)
    variables = _variables(cluster)
    sections = _sections(cluster, texts, variables)
    files = texts | ({VARIABLES: yaml_text.dump(variables)} if variables else {})
    rendered = _rendered(sections, files)
    return SpecImport(
        sections=rewrite(sections, lambda part: without_login(part) if isinstance(part, str) else part),
        files=files,
        left_out=(*_left_out(given, release), *_invalid_contents(given, cluster, contents)),
        refused=tuple(error for error in errors(check_file(path, release).placed) if not _is_of_contents(error)),
        differences=tuple(_differences(document(cluster, contents), rendered)),
    )


def _invalid_contents(
    given: InstallConfigValues, cluster: InstallConfigFields, contents: FileContents
) -> Iterator[Mistake]:
    """Yield contents that the installer refuses, such as the placeholders of a public file."""
    for content_mistake in content_mistakes(cluster, contents):
        if content_mistake.where in FILES and getattr(contents, content_mistake.where) is not None:
            path = next(field.spellings[0].path for field in FIELDS if field.of == content_mistake.where)
            yield Mistake(
                given.place(path), content_mistake.what, f"put a valid one into {FILES[content_mistake.where]}"
            )


def _is_of_contents(found: Diagnostic) -> bool:
    return found.where.rpartition(": ")[2] in {field.spellings[0].path for field in FIELDS if field.of in FILES}


# --- the spec -----------------------------------------------------------------------------


def _texts(contents: FileContents) -> dict[str, str]:
    """Return the contents of files that the install-config has, by the names of the files."""
    secret = contents.pull_secret.reveal() if contents.pull_secret else None
    found = {"pull_secret": secret, "ssh_key": contents.ssh_key}
    found["additional_trust_bundle"] = contents.additional_trust_bundle
    return {FILES[name]: text for name, text in found.items() if text is not None}


def _variables(cluster: InstallConfigFields) -> dict[str, str]:
    """Return the URLs that contain a login or a query, which may be a signature, by the names of variables for them."""
    urls = {f"{of}_proxy": getattr(cluster.proxy, of) for of in ("http", "https")} if cluster.proxy else {}
    urls["cluster_os_image"] = cluster.cluster_os_image
    return {name: url for name, url in urls.items() if url and may_be_secret(url)}


def _sections(cluster: InstallConfigFields, texts: Mapping[str, str], variables: Mapping[str, str]) -> Values:
    """Return the sections of a spec, those first that the last one refers to."""
    floating = {
        name: address
        for name in ("api", "ingress")
        if cluster.external_network and is_address(address := getattr(cluster, f"{name}_floating_ip") or "")
    }
    own: Values = {"path": f"{cluster.cluster_name}/install-config.yaml"}
    own |= {CONTENTS[name]: file for name, file in FILES.items() if file in texts or name == "pull_secret"}
    own |= escape(_differing(cluster)) | {f"{name}_floating_ip": name for name in floating}
    for name in variables:
        within, field = (own, name) if name in own else (own["proxy"], name.removesuffix("_proxy"))
        within[field] = f"${{{name}}}"
    image = None if "cluster_os_image" in variables else cluster.cluster_os_image
    of_network = cluster.machines_network
    names: dict[str, list[str | None]] = {
        "flavors": [machines.flavor for machines in (cluster.machines, cluster.control_plane, cluster.compute)],
        "images": [image if image and "://" not in image else None],
        "networks": [of_network.name if of_network and not of_network.id else None],
        "subnets": [subnet.name for subnet in cluster.machines_subnets if not subnet.id],
    }
    found: Values = {"name": cluster.cluster_name}
    about = "URL with its login and query, which may be secret"
    found |= {"variables": {name: {"description": about} for name in variables}} if variables else {}
    for section, named in names.items():
        unique = dict.fromkeys(filter(None, named))
        found |= {section: [{"name": escape(name)} for name in unique]} if unique else {}
    if floating:
        network = escape(cluster.external_network)
        found["floating_ips"] = [
            {"name": name, "external_network": network, "address": address} for name, address in floating.items()
        ]
    return found | {"install_config": own}


def _differing(part: Any) -> Values:
    """Return the fields of a cluster, or of a part of it, that differ from their defaults, as plain data."""
    found: Values = {}
    for field in fields(part):
        value = getattr(part, field.name)
        if value != _default(field):
            found[field.name] = _plain(value)
    return found


def _default(field: Field[Any]) -> object:
    return field.default_factory() if field.default_factory is not MISSING else field.default


def _plain(value: Any) -> Any:
    if is_dataclass(value):
        return _differing(value)
    if isinstance(value, tuple):
        return [_plain(each) for each in value]
    return dict(value) if isinstance(value, Mapping) else value


# --- the proof ----------------------------------------------------------------------------


def _rendered(sections: Values, files: Mapping[str, str]) -> Values:
    """Return the install-config that a spec renders, read from files as every command reads it."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for file, text in {**files, SPEC: yaml_text.dump(sections)}.items():
            write_private(folder / file, text)
        spec = load_spec(folder / SPEC, vars_files=[folder / VARIABLES] if VARIABLES in files else ())
        (found,) = (resource for resource in spec.resources if isinstance(resource, InstallConfig))
        (resolved,) = found.resolve(Context(resources=spec.resources, cloud=None))
        assert isinstance(resolved, InstallConfig)
        return document(resolved, resolved.contents())


def _differences(wanted: Values, rendered: Values, above: str = "") -> Iterator[str]:
    """Yield the paths at which two documents differ; no values, which may be secret."""
    for name in dict.fromkeys([*wanted, *rendered]):
        one, other, path = wanted.get(name), rendered.get(name), f"{above}{name}"
        if isinstance(one, dict) and isinstance(other, dict):
            yield from _differences(one, other, f"{path}.")
        elif _text(one) != _text(other):
            yield path


def _text(value: Any) -> Any:
    return value.reveal().strip() if hasattr(value, "reveal") else value.strip() if isinstance(value, str) else value


# --- what the spec cannot express ---------------------------------------------------------


def _left_out(given: InstallConfigValues, release: str) -> Iterator[Mistake]:
    ignored = [finding for finding in findings(given.data, release) if not is_deprecated(finding)]
    for mistake in ignored:
        yield replace(mistake, where=given.place_of(mistake.where))
    reported = {_key(mistake.where) for mistake in ignored}
    for where, value in _leaves(given.data, ""):
        key = _key(where)
        if key == POOL[0] and value != POOL[1]:
            what = f"a spec names these machines {POOL[1]}"
            yield Mistake(given.place_of(where), what, "add the name to the rendered file")
        if _is_expressed(key) or value == DEFAULTS.get(key.rpartition(".")[2]) or key in IGNORED:
            continue
        if not any(key == each or key.startswith(f"{each}.") for each in reported):
            yield Mistake(given.place_of(where), "a spec has no field for it", "add it to the rendered file")
    yield from _host_prefixes(given)


def _host_prefixes(given: InstallConfigValues) -> Iterator[Mistake]:
    """Yield host prefixes of further IPv4 networks of pods that differ from the first one's, which a spec has."""
    path, networks = given.field("cluster_networks")
    lengths: set[object] = set()
    for network in networks if isinstance(networks, list) else ():
        if isinstance(network, Mapping) and ":" not in str(value_of(network, "cidr")):
            lengths.add(value_of(network, "hostPrefix"))
    if len(lengths) > 1:
        what = "a spec has one host prefix for all IPv4 networks"
        yield Mistake(given.place(path), what, "write the same for all of them")


@cache
def _expressed() -> frozenset[str]:
    """Return the lowercase paths whose values a spec has."""
    inner = [field for field in INNER if not field.spellings[0].path.startswith(("metadata", "kind"))]
    mine = [field for field in FIELDS if field.of]
    return frozenset(_key(spelling.path) for field in (*mine, *inner) for spelling in field.spellings)


def _is_expressed(key: str) -> bool:
    properties = "platform.openstack.clusterosimageproperties."
    return key in _expressed() or key.startswith(properties)


def _key(where: str) -> str:
    """Return a path in lowercase letters, without the numbers of elements."""
    return ".".join(step.partition("[")[0] for step in where.lower().split("."))


def _leaves(node: object, where: str) -> Iterator[tuple[str, object]]:
    """Yield the places of a document, with the values there that Go does not read as missing."""
    if isinstance(node, Mapping) and node:
        for name, value in node.items():
            yield from _leaves(value, f"{where}.{name}".lstrip("."))
    elif isinstance(node, Sequence) and not isinstance(node, str) and any(isinstance(each, Mapping) for each in node):
        for index, value in enumerate(node):
            yield from _leaves(value, f"{where}[{index}]")
    elif node not in EMPTY:
        yield where, node
