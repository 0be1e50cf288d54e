"""What an extension adds to the foundation, and how extensions are found.

The foundation (``base core cloud spec resources verbs cli``) prepares projects on OpenStack and names no product. An
extension is data: it names sections of a spec, commands and functions as ``module:attribute``, and each is imported
when it is first used. An entry point of the group ``openstack_prep.extensions`` leads to the ``Extension`` object of a
package, whoever has written it.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

    from openstack_prep.base.errors import ExtensionError

GROUP = "openstack_prep.extensions"
_FOLDER = os.path.dirname(__file__)
RESERVED = ("name", "include", "variables", "clouds")
"""Sections that every spec may have: they say how the others are read."""
AMBIGUOUS = ("users", "ports")
"""Sections whose names are those of lists in files of other programs, such as cloud-init."""
FOUNDATION = ("openstack_prep.resources.extension", "openstack_prep.cli.extension")
"""What the foundation itself has, described as an extension; it needs no entry point, whose search takes a while."""


class Section(NamedTuple):
    """A section of a spec: the resources of one kind, or a value that other sections need."""

    name: str
    kind: str
    """Its class: a ``Resource``, or another frozen dataclass."""
    text: str
    """What it declares, for the schema and the reference."""
    many: bool = True
    """Whether it is a list."""
    after: str = ""
    """The section that it follows in plans and reports; default: at the end."""
    in_files: bool = False
    """Whether its resources are files of this machine."""
    next: str = ""
    """The command for what apply has written, such as ``ipi --spec {}``, in which the braces stand for the spec."""
    secrets: tuple[str, ...] = ()
    """Fields such as ``external_ips.bgp`` that hold secrets and are left out when only some sections are read."""


class Scan(NamedTuple):
    """A kind whose existing resources ``scan`` lists, declared or not."""

    kind: str
    on_networks: bool = False
    """Whether there is none in a project without networks."""
    only_left: bool = False
    """Whether it finds only what a spec no longer declares, and nothing for an audit or an export."""
    has_tag: bool = True
    """Whether its resources carry an ownership tag, as its class says; else none is found that a spec no longer
    declares.
    """
    tagged: str = ""
    """``tagged(run, project)``: whether anything in a project may have the ownership tag of the spec, by the list that
    ``scan`` of the kind reads. A plan asks the kind only then, and otherwise does not load it. Default: it always does.
    """
    of_cloud: bool = False
    """Whether a kind with ``tagged`` is outside of projects: ``project`` is None then."""


class Command(NamedTuple):
    """What ``--help`` says of a command."""

    text: str
    """What it does, in one line."""
    examples: Mapping[str, str] = {}
    """Command lines without ``openstack-prep``, and what each is for; at least two."""
    heading: str = ""
    """Where the list of commands has it; default: the heading of the extension."""


class FileForm(NamedTuple):
    """Files of one form, so that a command that is given one of another form names the right command."""

    what: str
    """What such a file is, such as ``a fleet``."""
    command: str = ""
    """The command for it, such as ``fleet validate {}``, in which the braces stand for the file; default: none."""
    keys: tuple[str, ...] = ()
    """Keys of which any tells that a file is of this form."""
    find: str = ""
    """``find(data)``: return the key that tells it, or None, where the names of keys do not suffice."""


class Extension(NamedTuple):
    """What one package adds."""

    name: str
    heading: str = ""
    """Heading of its commands in the list of all; default: its name."""
    sections: tuple[Section, ...] = ()
    acronyms: tuple[str, ...] = ()
    """Words of the names of its kinds that are written in capitals, such as ``RKE``."""
    scans: tuple[Scan, ...] = ()
    groups: Mapping[str, str] = {}
    """Help of each group of commands, such as ``rke`` of ``rke check``."""
    commands: Mapping[str, Mapping[str, Command | str]] = {}
    """Help of each command, or its text alone, by the module that adds it: its ``add(command)`` is called when the
    command is used; or by that function itself, as ``module:function``.
    """
    derive: str = ""
    """``derive(resources, values)``: yields all resources of a spec, each with the key of the declaration that it comes
    from; ``values`` are the sections that are no resources. It asks no cloud; raises SpecError.
    """
    check: str = ""
    """``check(context)``: yields what is wrong with the resources of a spec together, by rules that need no cloud, for
    ``validate`` and for plans to apply; ``context`` is the ``Context`` of ``core/resource.py``.
    """
    checked: tuple[str, ...] = ()
    """Kinds without which ``check`` and ``warn`` find nothing in a spec, so that they are not loaded; default: they
    always are.
    """
    warn: str = ""
    """``warn(context)``: yields warnings about valid resources of a spec, each as the key of a resource and a text, by
    rules that need no cloud.
    """
    leftovers: str = ""
    """``leftovers(run, resources, folder)``: yields managed things on this machine that a spec no longer declares, with
    what was observed of them; ``folder`` is that of the spec, or None.
    """
    cascades: Mapping[str, str] = {}
    """What the services of its kinds take along, or leave behind, when a resource of another package's kind is deleted:
    ``module:TABLE`` by that kind, such as ``project``. A table is a tuple of ``CascadeRow``, of
    ``openstack_prep/resources/cascades/row.py``; it counts for the kinds that have one themselves.
    """
    clusters: str = ""
    """How resources are recognised as those of a cluster of its kind: a class derived from ``ClusterNaming``, of
    ``openstack_prep/resources/lists/cluster_naming.py``.
    """
    documents: str = ""
    """The module whose ``DOCUMENTS`` and ``PARTS`` describe what its commands print with --format json."""
    schemas: Mapping[str, str] = {}
    """Functions that return further schemas for ``schema --NAME``, by name."""
    forms: tuple[FileForm, ...] = ()
    """Files of its own and of programs that it is about, those that are easily mistaken for others last."""
    examples: Mapping[str, str] = {}
    """Further files for ``example NAME``, as ``package:file``, by name."""
    codes: str = ""
    """The package whose ``codes.yaml`` explains its codes."""


def load(reference: str) -> Any:
    """Return what ``module:attribute`` or ``module`` names; raises ExtensionError."""
    module, _, attribute = reference.partition(":")
    try:
        found = import_module(module)
        return getattr(found, attribute) if attribute else found
    except Exception as error:  # a stranger's module may raise anything
        from importlib.metadata import packages_distributions  # reads all that is installed

        top = module.partition(".")[0]
        owners = packages_distributions().get(top, [top])
        raise unusable(f"{reference} cannot be loaded: {_cause(error)}", *owners) from error


def call(extension: Extension, field: str, *arguments: object) -> list[Any]:
    """Return what a function of an extension yields, such as that of ``check``; nothing if it has none.

    Raises PrepError as the function does, and ExtensionError for anything else that a stranger's function raises.
    """
    from openstack_prep.base.errors import PrepError  # --help does without

    reference: str = getattr(extension, field)
    if not reference:
        return []
    function = load(reference)
    try:
        return list(function(*arguments))
    except PrepError:
        raise
    except Exception as error:
        if reference.partition(".")[0] == __package__:  # a bug of openstack-prep, which is reported as one
            raise
        package = package_of(extension)
        what = f"{field} of the extension {extension.name} of {package} ({reference}) failed: {_cause(error)}"
        raise unusable(what, package) from error


def _cause(error: Exception) -> str:
    return f"{type(error).__name__}: {error}"


def unusable(what: str, *packages: str) -> ExtensionError:
    """Return the error that names the packages to update."""
    from openstack_prep.base.errors import ExtensionError  # --help does without

    names = " or ".join(dict.fromkeys(packages))
    return ExtensionError(f"{what}; update {names}, or uninstall it")


@cache
def foundation() -> tuple[Extension, ...]:
    """Return what the foundation itself has."""
    return tuple(import_module(module).EXTENSION for module in FOUNDATION)


def installed() -> tuple[Extension, ...]:
    """Return the foundation and all installed extensions, by name; raises ExtensionError."""
    return tuple(extension for extension, _ in _with_packages())


def package_of(extension: Extension) -> str:
    """Return the installed package that an extension comes from."""
    return next(package for each, package in _with_packages() if each is extension)


@cache
def _with_packages() -> tuple[tuple[Extension, str], ...]:
    from importlib.metadata import entry_points  # takes as long as all else that --help of a command needs

    found = [(extension, "openstack_prep") for extension in foundation()]
    points = {each.value: each for each in (*_shipped(), *entry_points(group=GROUP))}
    for point in sorted(points.values(), key=lambda each: each.name):
        package = point.dist.name if point.dist else point.value
        try:
            extension = point.load()
        except Exception as error:  # a stranger's module may raise anything
            what = f"the extension {point.name} of {package} cannot be loaded: {_cause(error)}"
            raise unusable(what, package) from error
        if not isinstance(extension, Extension):
            raise unusable(f"the extension {point.name} of {package}: {point.value} is not an Extension", package)
        found.append((extension, package))
    owners = {f"section {name}": "openstack_prep" for name in RESERVED}
    for extension, package in found:
        for name in _names(extension):
            if name in owners:
                raise unusable(f"{owners[name]} and {package} both bring the {name}", package, owners[name])
            owners[name] = package
    return tuple(found)


def _shipped() -> Iterator[EntryPoint]:
    """Yield the extensions beside this module: metadata may be missing, or older than a clone that was pulled."""
    from importlib.metadata import EntryPoint  # as for _with_packages

    for name in sorted(entry.name for entry in os.scandir(_FOLDER) if entry.is_dir()):
        module = f"{__package__}.{name}.extension"
        if module not in FOUNDATION and os.path.isfile(os.path.join(_FOLDER, name, "extension.py")):
            yield EntryPoint(name, f"{module}:EXTENSION", GROUP)


def _names(extension: Extension) -> Iterator[str]:
    """Yield what only one extension can have."""
    yield from (f"section {section.name}" for section in extension.sections)
    yield from (f"command {name}" for texts in extension.commands.values() for name in texts)
    yield from (f"schema {name}" for name in extension.schemas)
    yield from (f"example {name}" for name in extension.examples)


@cache
def sections() -> tuple[Section, ...]:
    """Return the sections of all extensions, in the order of reports."""
    packages = {each: package for extension, package in _with_packages() for each in extension.sections}
    declared = list(packages)
    names = {section.name for section in declared}

    def with_followers(section: Section) -> Iterator[Section]:
        yield section
        for follower in declared:
            if follower.after == section.name:
                yield from with_followers(follower)

    first = (section for section in declared if section.after not in names)
    found = tuple(each for section in first for each in with_followers(section))
    if cycle := [section for section in declared if section not in found]:
        names_of_cycle = " and ".join(section.name for section in cycle)
        what = f"the sections {names_of_cycle} follow one another in a cycle"
        raise unusable(what, *(packages[section] for section in cycle))
    return found


def commands(found: Iterable[Extension] | None = None) -> dict[str, Command]:
    """Return the help of all commands, or of those of some extensions, by name and with the heading of each."""
    return {
        name: command._replace(heading=command.heading or extension.heading or extension.name.capitalize())
        for extension in (installed() if found is None else found)
        for helps in extension.commands.values()
        for name, given in helps.items()
        for command in [given if isinstance(given, Command) else Command(given)]
    }


def cascades(kind: str) -> tuple[Any, ...]:
    """Return the rows of the table of a kind, the foundation's first."""
    tables = (load(extension.cascades[kind]) for extension in installed() if kind in extension.cascades)
    return tuple(row for table in tables for row in table)


def scans() -> tuple[Scan, ...]:
    """Return what is scanned, in the order of a report."""
    return tuple(each for extension in installed() for each in extension.scans)
