"""The mirrors of the release's images: complete in the install-config, and with the Sigstore signature of the release.

Source: the ClusterImagePolicy ``openshift`` (openshift/cluster-update-keys #89) requires signatures of
quay.io/openshift-release-dev/ocp-release; CRI-O reads them from the tag sha256-DIGEST.sig beside the image
(containers/image, use-sigstore-attachments); ``oc mirror --v2`` copies them, ``oc adm release mirror`` does not
(openshift-docs #104865, #118944).
"""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Iterator
from pathlib import Path

from openstack_prep.base.diagnostic import Diagnostic, Status
from openstack_prep.base.errors import PrepError
from openstack_prep.download.installer_program import release_image_of
from openstack_prep.openshift.check.context import CheckContext
from openstack_prep.openshift.check.mirror.left import WORKSPACE, left_mirrors, policy_for
from openstack_prep.openshift.check.mirror.places import PAYLOADS, RELEASE, login_for, mirrors_of
from openstack_prep.openshift.check.mirror.registry import Answer, Outcome, Registry
from openstack_prep.openshift.install_config.document import has_previews
from openstack_prep.openshift.install_config.releases import FIRST_OF_5, SIGNED, SIGNED_AT_BOOT, SIGNED_PREVIEW

_BY_DIGEST = re.compile(r"([^@\s]+?)(?::[\w.-]+)?@sha256:([0-9a-f]{64})")
_SIGNATURE = "application/vnd.dev.cosign.simplesigning.v1+json"
AGAIN = "oc mirror --v2 --config IMAGESET.yaml --workspace file://WORKSPACE docker://{}"


def mirror(context: CheckContext) -> Iterator[Diagnostic]:
    """Yield what the mirrors of a release lack."""
    yield from _incomplete(context)
    if not mirrors_of(RELEASE, context.cluster.image_mirrors):
        return
    by = _demanded_by(context)
    if by is None:
        return
    image = _release_image(context.installer)
    found = _BY_DIGEST.fullmatch(image or "")
    if not found:
        yield _unknown(context, image)
    elif found[1] == RELEASE:
        yield from _signature(context, found[2], by)


def _incomplete(context: CheckContext) -> Iterator[Diagnostic]:
    """Yield whether only the release image is mirrored, or only what it consists of."""
    sources = context.cluster.image_mirrors
    payloads = PAYLOADS if context.release >= FIRST_OF_5 else PAYLOADS[:1]
    has_payload = any(mirrors_of(each, sources) for each in payloads)
    mirrored = {RELEASE: bool(mirrors_of(RELEASE, sources)), payloads[-1]: has_payload}
    missing = [repository for repository, there in mirrored.items() if not there]
    left = [each for each in left_mirrors(context.path.parent) if each.source in (RELEASE, *payloads)]
    if not missing or (len(missing) == len(mirrored) and not left):
        return
    new = [each for each in left if not mirrors_of(each.source, sources)]
    lines = "; ".join(f"{{source: {each.source}, mirrors: [{', '.join(each.mirrors)}]}}" for each in new)
    yield Diagnostic(
        code="mirror.incomplete",
        where=context.place("image_mirrors"),
        what=f"names no mirror of {' and '.join(missing)}",
        why="a release is pulled from both repositories; without a mirror, machines ask quay.io",
        fix=f"add {lines}"
        if lines
        else f"copy the imageDigestMirrors of {WORKSPACE}/idms-oc-mirror.yaml, which oc mirror --v2 writes, to it",
        status=Status.WARNING,
    )


def _demanded_by(context: CheckContext) -> str | None:
    """Return which policy demands a signature of the release image, if one does."""
    if context.release in SIGNED or (context.release in SIGNED_PREVIEW and has_previews(context.cluster)):
        return "openshift"
    return policy_for(RELEASE, context.path.parent)


def _release_image(installer: Path | None) -> str | None:
    if installer is None:
        return os.environ.get("OPENSHIFT_INSTALL_RELEASE_IMAGE_OVERRIDE")
    try:
        return release_image_of(installer)
    except PrepError:
        return None


def _unknown(context: CheckContext, image: str | None) -> Diagnostic:
    what = f"the release image {image!r} has no digest" if image else "no installer tells which release image it is"
    return Diagnostic(
        code="mirror.unknown-release",
        where=context.place("image_mirrors"),
        what=f"{what}, so the mirrors were not asked for its signature",
        why="a signature belongs to a digest",
        fix="give --installer FILE, the openshift-install that will run",
        status=Status.UNKNOWN,
    )


# --- what the registries answer ------------------------------------------------------------


def _signature(context: CheckContext, digest: str, policy: str) -> Iterator[Diagnostic]:
    """Yield what keeps every mirror from giving the release image with its signature; nothing if one does."""
    found: list[Diagnostic] = []
    for each in mirrors_of(RELEASE, context.cluster.image_mirrors):
        problem = _ask(context, each, digest, policy)
        if problem is None:
            return
        found.append(problem)
    yield from found


def _ask(context: CheckContext, mirrored: str, digest: str, policy: str) -> Diagnostic | None:
    host, _, repository = mirrored.partition("/")
    secret, bundle = context.contents.pull_secret, context.contents.additional_trust_bundle
    registry = Registry(host=host, login=login_for(mirrored, secret), bundle=bundle, seconds=context.seconds)
    image = registry.manifest(repository, f"sha256:{digest}")
    if image.answer is not Answer.FOUND:
        return _no_image(context, mirrored, digest, image)
    tag = f"sha256-{digest}.sig"
    signature = registry.manifest(repository, tag)
    if signature.answer is Answer.FOUND and _has_signature(signature):
        return None
    if signature.answer not in (Answer.FOUND, Answer.MISSING):
        return _no_image(context, mirrored, digest, signature)
    at_boot = context.release in SIGNED_AT_BOOT
    nothing = "is no Sigstore signature" if signature.answer is Answer.FOUND else "does not exist"
    copied = shlex.join(["oc", "image", "mirror", f"{RELEASE}:{tag}", f"{mirrored}:{tag}"])
    return Diagnostic(
        code="mirror.no-signature",
        where=mirrored,
        what=f"has the release image sha256:{digest[:12]}..., but its signature, the tag {tag}, {nothing}",
        why=f"the ClusterImagePolicy {policy} demands it: "
        + ("no machine pulls the release at its first boot" if at_boot else "nodes refuse the release image"),
        fix=f"{AGAIN.format(shlex.quote(host))}  # copies signatures too; oc adm release mirror does not"
        if at_boot
        else f"{copied}  # or mirror again with oc mirror --v2",
        status=Status.ERROR if at_boot else Status.WARNING,
    )


def _has_signature(outcome: Outcome) -> bool:
    layers = outcome.manifest.get("layers")
    kinds = [each.get("mediaType") for each in layers if isinstance(each, dict)] if isinstance(layers, list) else []
    return _SIGNATURE in kinds


def _no_image(context: CheckContext, mirrored: str, digest: str, outcome: Outcome) -> Diagnostic:
    """Return why a mirror does not give the release image or its signature."""
    host = mirrored.partition("/")[0]
    again, url = AGAIN.format(shlex.quote(host)), shlex.quote(f"https://{host}/v2/")
    server = shlex.quote(_with_port(host))
    match outcome.answer:
        case Answer.MISSING:
            return Diagnostic(
                code="mirror.no-release",
                where=mirrored,
                what=f"has no release image sha256:{digest[:12]}...: {outcome.detail}",
                why="the installer and the cluster pull exactly this image",
                fix=f"{again}  # with the installer's release, or use the installer of the mirrored one",
            )
        case Answer.DENIED:
            login = login_for(mirrored, context.contents.pull_secret)
            return Diagnostic(
                code="mirror.denied",
                where=mirrored,
                what=f"refuses the request {'with its login in pullSecret' if login else 'without a login'}: "
                f"{outcome.detail}",
                why="machines pull with the same pullSecret",
                fix=f"podman login --authfile pull-secret.json {shlex.quote(host)}  # then put it into pullSecret",
            )
        case Answer.UNTRUSTED:
            return Diagnostic(
                code="mirror.untrusted",
                where=mirrored,
                what=f"its certificate cannot be verified: {outcome.detail}",
                why="machines trust their system's CAs and additionalTrustBundle",
                fix=f"openssl s_client -connect {server} -showcerts  # add its CA to additionalTrustBundle",
            )
        case Answer.UNREACHABLE:
            return Diagnostic(
                code="mirror.unreachable",
                where=mirrored,
                what=f"this machine gets no answer: {outcome.detail}",
                why="machines pull from it; from this machine it could not be checked",
                fix=f"curl -v {url}  # shows what fails: name, route, firewall or the registry",
                status=Status.WARNING,  # the machines may reach it
            )
        case _:
            return Diagnostic(
                code="mirror.invalid",
                where=mirrored,
                what=f"does not answer as a registry: {outcome.detail}",
                why="machines cannot pull from it",
                fix=f"curl -v {url}  # a registry answers 200 or 401; correct the mirror's name and port",
            )


def _with_port(host: str) -> str:
    return host if re.search(r":\d+$", host) else f"{host}:443"
