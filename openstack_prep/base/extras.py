"""How to install what an extra of this package adds.

The command names the packages of others, never this one with its extra: it came from a clone or a wheel, and in a
package index anybody could have registered its name.
"""

from __future__ import annotations

from importlib import metadata

from openstack_prep.base import shell

PACKAGE = "openstack_prep"


def install(extra: str, package: str = PACKAGE) -> str:
    """Return the command that installs the packages of an extra."""
    try:
        required = metadata.requires(package) or ()
    except metadata.PackageNotFoundError:  # run from its source
        return f"pip install '.[{extra}]' in the clone of its repository"
    found = [each.partition(";") for each in required]
    names = [name.strip() for name, _, marker in found if f"extra == '{extra}'" in marker.replace('"', "'")]
    return shell.join(["pip", "install", *names])
