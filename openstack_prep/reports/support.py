"""A support bundle: one YAML document about a run, which a person reads before sending it."""

from __future__ import annotations

import json
import os
import platform
import re
import sys
from collections.abc import Iterable, Iterator
from importlib import metadata
from urllib.parse import unquote, urlsplit

from openstack_prep.base.errors import PrepError
from openstack_prep.base.formats import yaml_text
from openstack_prep.base.raw import Values, map_texts
from openstack_prep.base.secret import HIDDEN, secrets_in
from openstack_prep.base.secret_forms import QUERY, hide, list_named_secrets, without_logins
from openstack_prep.cloud.connection import Cloud
from openstack_prep.core.model import Resource
from openstack_prep.core.text import fields_of_new, plain
from openstack_prep.spec import Spec
from openstack_prep.verbs.spec_files import without_folders
from openstack_prep.version import __version__

HEAD = """\
# A support bundle of openstack-prep. Read it before you send it; docs/support.md#support-bundle says what it holds.
# It holds no passwords, keys and tokens that openstack-prep knows to be secret, but names, addresses and ids.
"""
OF_FILES = ("public_key",)
"""Fields that may be the content of a file."""
SHORTEST = 4
"""Characters of a secret that is masked wherever it occurs: a shorter one would hide half of the text."""
SECRET = re.compile(r"password|passcode|token|secret")
LOGIN = re.compile(r"(?<=://)[^/?#\s]+(?=@)")
"""The login in a URL, such as that of a Keystone behind a proxy, or of a mirror."""
INTERESTING = re.compile(r"(OS|OPENSTACK_PREP|XDG|VAULT)_\w+|\w*_proxy|\w*_PROXY|\w+_CA_BUNDLE|SSL_CERT_\w+")


def versions() -> Values:
    """Return the versions of everything that takes part, and which of our variables are set, without their values."""
    try:
        requirements = metadata.requires("openstack_prep") or []
    except metadata.PackageNotFoundError:  # run from its source
        requirements = []
    needed = sorted({re.split(r"[^\w.-]", requirement)[0] for requirement in requirements})
    return {
        "openstack_prep": __version__,
        "python": sys.version.split()[0],
        "platform": platform.platform(),
        "packages": {name: version for name in needed if (version := _version(name))},
        "environment": sorted(filter(INTERESTING.fullmatch, os.environ)),
    }


def _version(package: str) -> str | None:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:  # of an extra
        return None


def of_spec(spec: Spec) -> Values:
    """Return what a spec declares, with stars for secrets, and without the content of files."""
    return {
        "name": spec.name,
        "files": [str(part.path) for part in spec.parts],
        # a value may be a part of a password
        "variables": dict.fromkeys(spec.values, HIDDEN) if spec.has_plain_secrets else plain(spec.values),
        "warnings": list(spec.warnings),
        "resources": {str(resource.key): _declared(resource) for resource in spec.resources},
    }


def _declared(resource: Resource) -> object:
    try:
        values = fields_of_new(resource)
    except PrepError as error:
        return {"unknown": str(error)}
    return plain({name: "(left out)" if name in OF_FILES else value for name, value in values.items()})


def of_cloud(cloud: Cloud) -> Values:
    """Return which cloud this is, as far as its entry of clouds.yaml and its catalogue say."""
    return {
        "entry": cloud.name,
        "auth_url": cloud.auth_url,
        "auth_type": str(cloud.config.get("auth_type")),
        "region": cloud.region,
        "interface": cloud.interface,
        "roles": sorted(cloud.roles),
        "services": sorted({endpoint["type"] for endpoint in cloud.endpoints}),
    }


def known_secrets(spec: Spec | None, clouds: Iterable[Cloud]) -> Iterator[str]:
    """Yield the values of secrets that were read, so that nothing else can show them; nobody is asked for more."""
    for secret in secrets_in(spec.resources if spec else ()):
        if secret.fetched:
            yield secret.reveal()
    for name, value in spec.values.items() if spec else ():
        yield from list_named_secrets(value, name)
    for cloud in clouds:
        auth = cloud.config.get("auth") or {}
        yield from (str(value) for name, value in auth.items() if value and SECRET.search(name))
        if password := urlsplit(cloud.auth_url).password:
            yield from (password, unquote(password))


def written(document: Values, secrets: Iterator[str]) -> str:
    """Return the text of a bundle, in which stars replace secrets, and ~ the user's home."""
    hidden = [secret for secret in secrets if len(secret.strip()) >= SHORTEST]

    def clean(text: str) -> str:
        return without_logins(QUERY.sub(f"?{HIDDEN}", LOGIN.sub(HIDDEN, hide(text, hidden))))

    plain_data = json.loads(json.dumps(document, default=str))
    return HEAD + yaml_text.dump(without_folders(map_texts(plain_data, clean)))
