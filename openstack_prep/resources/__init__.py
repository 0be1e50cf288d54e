"""The OpenStack kinds: one folder per service, and one module per kind and for the helpers that only this kind needs.

``from openstack_prep.resources import Network`` works as it always has, and so do the names of parts, of references and
of classes that extensions bring for their sections.
"""

from __future__ import annotations

import importlib

from openstack_prep import extensions

_MODULES = {
    "AccessRule": "resources.credentials.application_credential",
    "Domain": "resources.identity.project",
    "ExternalNetwork": "resources.network.network",
}
"""The module of each name that ``openstack_prep`` itself does not have."""


def __getattr__(name: str) -> object:
    if name in _MODULES:
        return getattr(importlib.import_module(f"openstack_prep.{_MODULES[name]}"), name)
    package = importlib.import_module("openstack_prep")
    if name in package.__all__:
        return getattr(package, name)
    if name[:1].isupper():  # a class of a section that an extension brings; submodules are asked for here, too
        for section in extensions.sections():
            if section.kind.partition(":")[2] == name:
                return extensions.load(section.kind)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
