"""The image that clusterOSImage names: a name in Glance, or a URL.

Source: Image API v2 "List images" (community images are not in it); OpenShift installer
docs/user/openstack/customization.md; openshift/installer #3745 for images too old for their installer.

Source: Image API v2.14 "Quota usage" (Xena): limit and usage, sizes in MiB; older ones, and those without
limits in Keystone, report nothing.  OpenShift installer docs/source: an image of RHCOS for each cluster, unless
clusterOSImage names one; the bootstrap machine's Ignition config since 4.4.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path, PurePosixPath
from typing import get_args
from urllib.parse import parse_qs, urlsplit

from openstack_prep.base import shell
from openstack_prep.base.diagnostic import Diagnostic, DiagnosticStatus
from openstack_prep.base.errors import DownloadError, NotFound, PrepError
from openstack_prep.base.suggestion import suggest
from openstack_prep.download.address import shown
from openstack_prep.download.rhcos import Arch, ask_installer, find_release
from openstack_prep.download.source import open_source
from openstack_prep.openshift.check.context import CheckContext
from openstack_prep.openshift.install_config.releases import STREAMS
from openstack_prep.openshift.install_config.rules.machines import image_format
from openstack_prep.reports.codes import documented
from openstack_prep.resources.image.glance import ImageRecord, sums

# --- image ------------------------------------------------------------------------------------


ON_ITS_WAY = ("queued", "saving", "uploading", "importing")
SCHEMES = ("http", "https", "file")
SKIPPED = (
    "unless exactly one image has that name, the installer skips all its checks of the cloud, including quotas, "
    "without an error"
)


def image(context: CheckContext) -> Iterator[Diagnostic]:
    """Yield what is wrong with the image of the machines."""
    named = context.cluster.cluster_os_image
    if named is None:
        return
    where = context.place("cluster_os_image")
    yield from _at_url(where, named) if "://" in named else _in_glance(context, where, named)


def _in_glance(context: CheckContext, where: str, name: str) -> Iterator[Diagnostic]:
    found = [ImageRecord.read(raw) for raw in context.cloud.image.list("/images", "images", name=f"eq:{name}")]
    if not found:
        names = [raw["name"] or "" for raw in context.cloud.image.list("/images", "images", status="active")]
        choose = context.openstack("image", "list", "--status", "active") + "  # and name one of these, or upload it"
        yield Diagnostic(
            code="image.missing",
            where=where,
            what=f"there is no image {name!r} that this project sees",
            why=SKIPPED,
            fix=suggest(name, names, choose),
        )
    elif len(found) > 1:
        ids = ", ".join(f"{each.id} ({each.status}, of {each.owner})" for each in found)
        mine = context.cloud.project_id
        best = max(found, key=lambda each: (each.status == "active", each.owner == mine))
        others = [each for each in found if each is not best]
        own = all(each.owner == mine for each in others)
        yield Diagnostic(
            code="image.ambiguous",
            where=where,
            what=f"{len(found)} images are called {name!r}: {ids}",
            why=SKIPPED,
            fix=context.leave_name("image", {each.id: each.name for each in others}, best.id, own=own),
        )
    else:
        yield from _one(context, where, found[0])


def _one(context: CheckContext, where: str, image: ImageRecord) -> Iterator[Diagnostic]:
    if image.status != "active":
        yield documented(
            code="image.not-active",
            where=where,
            what=f"image {image.name!r} is {image.status}",
            fix=_activate(context, image),
        )
    for found in image_format(image.name, image.disk_format):
        yield Diagnostic(
            code=found.code,
            where=where,
            what=found.what,
            why="RHCOS for OpenStack is qcow2, or raw after a conversion; other formats do not boot",
            fix=found.fix,
        )
    if context.installer and (sealed := sums(image).get("sha256")):
        yield from _of_installer(context.installer, where, image.name, sealed, context.cluster.os_image_stream)


def _activate(context: CheckContext, image: ImageRecord) -> str:
    """Return how an image becomes active; by a command only if it is deactivated (glance 33.0.0, domain/__init__.py).

    Only a member of the project that owns it, or an administrator, may do it (glance 33.0.0, policies/image.py).
    """
    words = ("image", "set", "--activate", image.id)
    if image.status == "deactivated":
        if image.owner == context.cloud.project_id:
            return f"{context.openstack(*words)}  # ask first who has deactivated it"
        return f"{shell.join(['openstack', *words])}  # as an administrator, or a member of project {image.owner}"
    if image.status in ON_ITS_WAY:
        return f"{context.openstack('image', 'show', '-c', 'status', image.id)}  # wait, unless its upload broke off"
    return "upload it again"


def _of_installer(installer: Path, where: str, name: str, sealed: str, stream: str | None) -> Iterator[Diagnostic]:
    """Yield whether an image is not the one that an installer wants for its stream, or for its default stream."""
    known = _sums_of_installer(installer, stream)
    if not known or sealed in known:
        return
    chosen = f"{installer}, os_image_stream: {stream}" if stream else str(installer)
    fix = f"rhcos: {{installer: {chosen}}} of that image in its spec, then openstack-prep apply"
    other = next((each for each in STREAMS if sealed in _sums_of_installer(installer, each)), None)
    if other is not None:
        yield documented(
            code="image.other-stream",
            where=where,
            what=f"image {name!r} is this installer's RHCOS of {other}, not of {stream or 'its default stream'}",
            fix=f"{fix}; or osImageStream: {other} in install-config.yaml",
            status=DiagnosticStatus.WARNING,
        )
        return
    yield Diagnostic(
        code="image.other-release",
        where=where,
        what=f"image {name!r} has sha256 {sealed}, which is not that of this installer's RHCOS",
        why="an image too old for its installer does not understand its Ignition config, and never boots",
        fix=fix,
        status=DiagnosticStatus.WARNING,
    )


def _sums_of_installer(installer: Path, stream: str | None) -> set[str]:
    """Return the checksums of an installer's images, of any architecture; none if it does not name them."""
    found = set()
    with contextlib.suppress(PrepError):  # older installers have no such command, or no streams
        metadata = ask_installer(str(installer), stream)
        for arch in get_args(Arch):
            with contextlib.suppress(DownloadError):  # an installer need not support all of them
                found.add(find_release(metadata, arch, str(installer)).uncompressed_sha256)
    return found


def _at_url(where: str, url: str) -> Iterator[Diagnostic]:
    try:
        parts = urlsplit(url)
    except ValueError:  # whose text may quote a password, as the URL does
        yield documented(
            code="image-url.invalid",
            where=where,
            what=f"{url.partition('://')[0]}://... is not a valid URL",
            fix="correct it, or upload the image and write its name",
        )
        return
    if parts.scheme not in SCHEMES:
        yield documented(
            code="image-url.invalid",
            where=where,
            what=f"the scheme of {shown(url)} is not one of {', '.join(SCHEMES)}",
            fix="serve it over https, or upload it and write its name",
        )
        return
    if "sha256" not in parse_qs(parts.query):
        yield documented(
            code="image-url.no-checksum",
            where=where,
            what=f"{shown(url)} has no ?sha256=",
            status=DiagnosticStatus.WARNING,
        )
    if PurePosixPath(parts.path.removesuffix(".gz").removesuffix(".xz")).suffix == ".raw":
        yield documented(
            code="image-url.raw",
            where=where,
            what=f"{shown(url)} is a raw image",
            fix="upload it with disk_format: raw, and write its name",
        )
    yield from _reachable(where, url)


def _reachable(where: str, url: str) -> Iterator[Diagnostic]:
    try:
        chunks, _ = open_source(url)
        with contextlib.closing(chunks):
            next(chunks, b"")
    except DownloadError as error:
        yield documented(
            code="image-url.unreachable",
            where=where,
            what=str(error),
        )


# --- limit ------------------------------------------------------------------------------------


IGNITION_SINCE = 4
RHCOS = 2400  # MiB, about


def image_limits(context: CheckContext) -> Iterator[Diagnostic]:
    """Yield the limits that the installer's uploads exceed."""
    named = context.cluster.cluster_os_image
    uploads = named is None or "://" in named
    ignition = context.release >= IGNITION_SINCE
    needed = {"image_count_total": uploads + ignition, "image_size_total": RHCOS * uploads}
    usage = _usage(context)
    for name, need in needed.items():
        if name not in usage or usage[name]["limit"] == -1:
            continue
        limit, used = usage[name]["limit"], usage[name]["usage"]
        if limit - used < need:
            unit = " MiB" if name == "image_size_total" else ""
            yield Diagnostic(
                code="quota.short",
                where=f"quota.{name}",
                what=f"{need}{unit} are needed, {max(0, limit - used)} of {limit}{unit} are free",
                why="Glance refuses the installer's upload, and the installer stops",
                fix=f"{shell.join(['openstack', 'limit', *_raise(context, name, used + need)])}  # as an administrator",
            )


def _usage(context: CheckContext) -> Mapping[str, Mapping[str, int]]:
    try:
        usage: Mapping[str, Mapping[str, int]] = context.cloud.image.get("/info/usage")["usage"]
    except NotFound:  # an older Glance
        return {}
    return usage


def _raise(context: CheckContext, name: str, limit: int) -> Sequence[str]:
    """Return the words that raise a limit: that of the project if it has one, or else a new one beside the default.

    Every user sees the limits of the own project, and all defaults (keystone 30.0.0, common/policies/limit.py).
    """
    identity, project_id = context.cloud.identity, context.cloud.project_id
    limits = identity.list("/limits", "limits", resource_name=name)
    own = next((each["id"] for each in limits if each["project_id"] == project_id), None)
    if own is not None:
        return ["set", "--resource-limit", str(limit), own]
    default = identity.list("/registered_limits", "registered_limits", resource_name=name)[0]
    region = ["--region", default["region_id"]] if default["region_id"] else []
    of = ["--project", project_id, "--service", default["service_id"], *region]
    return ["create", *of, "--resource-limit", str(limit), name]
