"""The inputs of a stack: template, the files that it names, and environments, in the form that Heat expects.

python-heatclient reads them, as for ``openstack stack create``. It names files by their full URLs; here they are named
relative to the template, so that the stack does not depend on the location of the template, and a different checkout
changes nothing.

Source: Orchestration API v1, "Create stack" (template, files, environment).
"""

from __future__ import annotations

import base64
import hashlib
import json
import os
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from importlib import import_module, resources
from pathlib import Path
from typing import Annotated, Any

import yaml

from openstack_prep.base.errors import ConfigError, DownloadError, SpecError
from openstack_prep.base.fields import ReadsBeside, source
from openstack_prep.base.formats.foreign_text import explain_yaml, refuse_large_yaml, without_values
from openstack_prep.base.formats.yaml_places import Document
from openstack_prep.base.given_file import MOST, read_bytes
from openstack_prep.base.invalid import InvalidValue
from openstack_prep.base.raw import Raw, Values, walk
from openstack_prep.base.secret import digest as costly_digest
from openstack_prep.base.secret_forms import has_url_secrets, without_url_secrets
from openstack_prep.download.address import local_path, shown
from openstack_prep.download.source import read_small
from openstack_prep.resources.heat.flow import GROUPS, strings_in

SHIPPED = "shipped:"
SECRETS_IMAGE = "openstack-prep-secrets-image"
"""Tag of a parameter that names an image with the values of hidden parameters."""


def template_source(value: object, base: Path) -> object:
    """Read the source of a template: a URL, a path, or ``shipped:NAME`` for a template of openstack_prep."""
    if not isinstance(value, str) or not value.startswith(SHIPPED):
        return source(value, base)
    if value.removeprefix(SHIPPED) not in _shipped():
        raise InvalidValue(
            "is not a shipped template", f"choose one of {', '.join(SHIPPED + each for each in _shipped())}"
        )
    return value


Template = Annotated[str, ReadsBeside(template_source)]


def _shipped() -> list[str]:
    found = resources.files("openstack_prep.heat_templates").iterdir()
    return sorted(each.name for each in found if each.name.endswith("-cluster.yaml"))


def is_hidden(parameter: Raw) -> bool:
    """Whether Heat hides the value of a parameter, by its declaration.

    Heat takes whatever is not empty for true, also "no" in quotation marks (27.0.0, engine/hot/parameters.py,
    HOTParamSchema.from_dict; engine/parameters.py, Schema.from_dict, of CloudFormation).
    """
    return bool(parameter.get("hidden")) or str(parameter.get("NoEcho", "false")).lower() == "true"


def hidden_in(template: Raw) -> frozenset[str]:
    """Return the parameters of a template whose values are hidden, also as Heat returns it."""
    declared: Raw = template.get("parameters") or {}
    return frozenset(name for name, each in declared.items() if is_hidden(each))


SPLITTING = ("str_split", "Fn::Split")
SHORTEST_PART = 4
"""Characters of a part of a secret that is hidden in an error; shorter ones are in any text."""


def _calls(value: object) -> Iterator[tuple[str, object]]:
    """Yield the functions in a template that make parts of a text, with their arguments."""
    mappings = (part for part in walk(value) if isinstance(part, Mapping))
    return ((name, part[name]) for part in mappings for name in (*SPLITTING, "yaql") if name in part)


def _split(text: str, arguments: object) -> Sequence[str]:
    delimiter = arguments[0] if isinstance(arguments, list | tuple) and arguments else None
    return text.split(delimiter) if isinstance(delimiter, str) and delimiter else ()


@dataclass(frozen=True)
class Package:
    """Template, files by name, and the merged environments."""

    template: Raw
    files: Mapping[str, str | bytes]
    environment: Raw

    @property
    def parameters(self) -> Mapping[str, Raw]:
        """The parameters that the template declares."""
        return self.template.get("parameters") or {}

    @property
    def hidden(self) -> frozenset[str]:
        """Parameters whose values are hidden."""
        return hidden_in(self.template)

    @property
    def secret_images(self) -> tuple[str, ...]:
        """Parameters that name an image with the values of hidden parameters."""
        return tuple(name for name, each in self.parameters.items() if SECRETS_IMAGE in (each.get("tags") or ()))

    @property
    def may_wait(self) -> bool:
        """Whether the template, or a file of it, may have a wait condition."""
        return any("::WaitCondition" in str(each) for each in (self.template, *self.files.values()))

    def documents(self) -> list[object]:
        """Return the template and the nested ones; None for a file of another kind."""
        return [self.template, *map(_parsed, self.files.values())]

    def types(self) -> set[tuple[str, str]]:
        """Return the types of its resources, with the file if a nested template has them.

        A resource with a condition is left to Heat, which does not look at the type of one that is off (27.0.0,
        engine/hot/template.py, resource_definitions).
        """
        found = set()
        for name, document in zip(("", *self.files), self.documents(), strict=True):
            if not isinstance(document, Mapping) or "heat_template_version" not in document:
                continue  # a file of another kind
            resources = document.get("resources")
            if isinstance(resources, Mapping):
                definitions = (resource for resource in resources.values() if isinstance(resource, Mapping))
                always = (definition for definition in definitions if "condition" not in definition)
                found |= {(name, kind) for each in always for kind in _types(each)}
        return found

    def parts(self, text: str) -> Iterator[str]:
        """Yield the parts of a value that functions of the templates may make of it, without short ones.

        Heat quotes such a part in an error, where the whole value does not occur.
        """
        functions = [*_calls(self.documents())]
        found = {each for _, arguments in functions for each in _split(text, arguments)}
        if any(name == "yaql" for name, _ in functions):
            found |= {*re.findall(r"\w+", text)}
        yield from sorted(each for each in found - {text} if len(each) >= SHORTEST_PART)

    def visible(self, parameters: Raw) -> Values:
        """Return the parameters without those that Heat hides."""
        return {name: value for name, value in sorted(parameters.items()) if name not in self.hidden}

    def settings(self, environment: Raw) -> str | None:
        """Return a digest of an environment without its parameters; None if it contains nothing else."""
        registry = dict(environment.get("resource_registry") or {})
        defaults = self.visible(environment.get("parameter_defaults") or {})
        registry = {
            name: value for name, value in registry.items() if value and value != name
        }  # Heat adds these pseudo parameters
        return digest(registry, defaults) if registry or defaults else None


@dataclass(frozen=True)
class _ParsedPackage:
    """A package, and the digests of the files of this machine that it was read from, by URL."""

    package: Package
    digests: Mapping[str, bytes]

    @property
    def is_current(self) -> bool:
        """Whether all of the files are as they were."""
        try:
            return all(_digest_of_file(url) == digest for url, digest in self.digests.items())
        except (OSError, ValueError):  # reading it again explains what is wrong
            return False


_parsed_packages: dict[tuple[str, ...], _ParsedPackage] = {}
MOST_PARSED = 32
"""Packages that are kept: a fleet may have more templates than memory."""


def read_package(template: str, environments: Sequence[str]) -> Package:
    """Read a template and all files that it and its environments name, and merge the environments.

    A plan needs the package of each copy of a stack, and parsing takes a hundred times as long as reading: a package
    whose files have not changed is not parsed again. Raises ConfigError that names the file that cannot be read.
    """
    key = tuple(
        each if "://" in each or each.startswith(SHIPPED) else os.path.abspath(each)
        for each in (template, *environments)
    )
    known = _parsed_packages.get(key)
    if known is not None and known.is_current:
        return known.package
    digests: dict[str, bytes] = {}
    package = _read_package(template, environments, digests)
    if all(url.startswith("file:") for url in digests):
        if len(_parsed_packages) >= MOST_PARSED:
            _parsed_packages.clear()
        _parsed_packages[key] = _ParsedPackage(package, digests)
    return package


def _read_package(template: str, environments: Sequence[str], digests: dict[str, bytes]) -> Package:
    """Read a package, and put the digest of each file that is read into ``digests``."""
    from heatclient import exc  # takes long to load, and only templates need it

    template_utils: Any = import_module("heatclient.common.template_utils")  # they do not declare their types
    utils: Any = import_module("heatclient.common.utils")
    texts: dict[str, str] = {}
    content = partial(_content, texts, digests)
    is_shipped = template.startswith(SHIPPED)
    if is_shipped:
        template = str(resources.files("openstack_prep.heat_templates") / template.removeprefix(SHIPPED))
    where, reading = template, "template"
    try:
        url = utils.normalise_file_path_to_url(template)
        files, parsed = template_utils.get_template_contents(template_object=url, object_request=content)
        _refuse_odd_parameters(parsed)
        if is_shipped:
            texts.clear()  # its numbers are right
        documents = [(url, parsed)]
        environment: Values = {}
        for where in environments:
            reading = "environments"
            env_url = utils.normalise_file_path_to_url(where)
            more, added = template_utils.process_environment_and_files(
                env_path=env_url,
                env_path_is_object=lambda path: True,
                object_request=content,
            )
            files |= more
            _refuse_odd_sections(added)
            documents.append((env_url, added))
            environment = template_utils.deep_update(environment, added)
        _refuse_files_of_this_machine(documents, files)
        _refuse_misread(texts, parsed, [url for url, _ in documents[1:]])
    except (OSError, ValueError, TypeError, AttributeError, RuntimeError, DownloadError, exc.BaseException) as error:
        reason = _reason(error, texts).removesuffix(f": {local_path(where)}")
        what = f"{reading}: {shown(where)} cannot be read: {reason}"
        raise ConfigError(f"{what}; correct the file, or choose another one") from None  # it may repeat the URL
    found = _as_seen_from(utils.base_url_for_url(url) + "/", Package(parsed, files, environment))
    if secret := next(filter(has_url_secrets, found.files), None):
        what = f"{shown(secret)} has a login or a query in its URL, which Heat would show to readers of the project"
        raise ConfigError(f"template: {shown(template)}: {what}; copy the files to a folder, and use its path")
    return found


def _reason(error: BaseException, texts: dict[str, str]) -> str:
    """Return why a package cannot be read; ``texts`` are what was read by then, the last of them with the error.

    heatclient puts PyYAML's error, which quotes the line, into its own one, and that into another (python-heatclient
    5.3.0, heatclient/common/environment_format.py and template_utils.py).
    """
    cause: BaseException | None = error
    while cause is not None:
        for arg in cause.args:
            if isinstance(arg, yaml.YAMLError):
                return f"{shown(next(reversed(texts)))}: {explain_yaml(arg)}"
        cause = cause.__context__
    if isinstance(error, FileNotFoundError | PermissionError | IsADirectoryError):
        return f"{error.strerror}: {error.filename}"
    return without_values(without_url_secrets(" ".join(str(getattr(error, "reason", None) or error).split())))


def _digest_of_file(url: str) -> bytes:
    return hashlib.sha256(read_bytes(Path(local_path(url)))).digest()


def _content(texts: dict[str, str], digests: dict[str, bytes], method: str, url: str) -> str | bytes:
    """Return what a file or URL contains, as heatclient's own reader does; it calls this instead, as for objects.

    What is text is put into ``texts`` as well, and the digest of all that is read into ``digests``.

    heatclient parses it with libyaml, which does not survive deep nesting. Source: python-heatclient 5.3.0,
    heatclient/common/utils.py (read_url_content), heatclient/common/template_utils.py (get_file_contents).
    """
    content = read_bytes(Path(local_path(url))) if url.startswith("file:") else read_small(url, MOST)
    digests[url] = hashlib.sha256(content).digest()
    try:
        text = content.decode()
    except ValueError:
        return base64.encodebytes(content)
    try:
        refuse_large_yaml(text)  # JSON is YAML
    except yaml.YAMLError as error:
        raise ValueError(f"{shown(url)}: {explain_yaml(error)}") from None
    texts[url] = text
    return content


def _refuse_misread(texts: Mapping[str, str], template: Raw, environments: Collection[str]) -> None:
    """Raise ValueError for numbers in templates and environments that YAML misreads, where the type is that of text.

    Heat would get 1.2 for the version 1.20, and 420 for the mode 0644.
    """
    for url, text in texts.items():
        if url in environments:
            _refuse_misread_in(url, text, template, ("parameters.{}", "parameter_defaults.{}"))
        elif "heat_template_version" in text and "default" in text:  # no script, nor another file
            _refuse_misread_in(url, text, None, ("parameters.{}.default",))


def _refuse_misread_in(url: str, text: str, template: Raw | None, fields: Iterable[str]) -> None:
    """Raise ValueError for such numbers in the fields of a document's parameters; it may be the template itself."""
    try:
        document = Document(Path(shown(url)), text)
    except SpecError:  # what Heat makes of it is for Heat to say
        return
    data = document.data if template is None else template
    declared = data.get("parameters") if isinstance(data, Mapping) else None
    texts = {
        field.format(name)
        for name, each in (declared.items() if isinstance(declared, Mapping) else ())
        if isinstance(each, Mapping) and each.get("type") in ("string", "comma_delimited_list")
        for field in fields
    }
    for mistake in document.misread() if texts else ():
        if mistake.where.rpartition(": ")[2].partition("[")[0] in texts:
            raise ValueError(f"{mistake.where}: {mistake.what}; {mistake.fix}")


def _refuse_files_of_this_machine(documents: Iterable[tuple[str, Raw]], files: Mapping[str, str | bytes]) -> None:
    """Raise ValueError if a document from another machine names a file of this one, such as a private key.

    Heat would show its content to everybody in the project. By now heatclient has replaced each name of a file in a
    document by its URL, and nested templates by JSON: python-heatclient 5.3.0, heatclient/common/template_utils.py
    (get_file_contents, resolve_environment_urls).
    """
    local = {url for url in files if url.startswith("file:")}
    for url, document in (*documents, *files.items()):
        if url.startswith("file:") or not local:
            continue
        for named in local.intersection(strings_in(_parsed(document))):
            what = f"{shown(url)} names {named}, a file of this machine, and Heat would show it to the project"
            raise ValueError(what)


def _parsed(document: Raw | str | bytes) -> object:
    """Return a document, or a nested template from its JSON; None for any other file."""
    if isinstance(document, Mapping):
        return document
    try:
        return json.loads(document)
    except (ValueError, RecursionError):
        return None


def _types(definition: object) -> Iterator[str]:
    """Yield the type of a resource, and that of its members if it is a group."""
    if isinstance(definition, Mapping) and isinstance(definition.get("type"), str):
        yield definition["type"]
        properties = definition.get("properties")
        if isinstance(properties, Mapping):
            yield from _types(properties.get(GROUPS.get(definition["type"], "")))


def _refuse_odd_parameters(template: Raw) -> None:
    """Raise ValueError for parameters that Heat refuses, and that others could not read."""
    declared = template.get("parameters") or {}
    if not isinstance(declared, Mapping):
        raise ValueError("parameters is not a mapping")
    for name, each in declared.items():
        if not isinstance(each, Mapping):
            raise ValueError(f"parameters.{name} is not a mapping")
        if not isinstance(each.get("type"), str):
            raise ValueError(f"parameters.{name} has no type; write one such as type: string")
        constraints = each.get("constraints") or []
        if not isinstance(constraints, list) or not all(isinstance(rule, Mapping) for rule in constraints):
            raise ValueError(f"parameters.{name}.constraints is not a list of mappings")


def _refuse_odd_sections(environment: Raw) -> None:
    """Raise ValueError for sections of an environment that others could not read."""
    for name in ("parameters", "parameter_defaults", "resource_registry"):
        if not isinstance(environment.get(name) or {}, Mapping):
            raise ValueError(f"{name} is not a mapping")


def _as_seen_from(base: str, package: Package) -> Package:
    """Name files below a folder by their relative paths."""

    def inner(value: Raw) -> Values:
        read: Values = json.loads(json.dumps(value, default=str).replace(base, ""))
        return read

    texts = {name: each.decode() if isinstance(each, bytes) else each for name, each in package.files.items()}
    files = {name.replace(base, ""): text.replace(base, "") for name, text in texts.items()}
    return Package(inner(package.template), files, inner(package.environment))


def digest(*contents: object) -> str:
    """Return a digest that is short enough for a plan, and costly to guess: environments and files may hold secrets."""
    return costly_digest(json.dumps(contents, sort_keys=True, default=str).encode(), b"of a stack")[:12]
