from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml

from openstack_prep.base.diagnostic import Diagnostic
from openstack_prep.base.secret import Secret
from openstack_prep.openshift.check.context import CheckContext
from openstack_prep.openshift.check.mirror import PAYLOADS, RELEASE, mirror
from openstack_prep.openshift.install_config import FileContents
from openstack_prep.openshift.install_config.model import Mirror
from tests.unit.openshift.check.mirror.serving import LOGIN, MANIFEST, SIGNATURE, Hosting, hosting
from tests.unit.openshift.check.project import Project
from tests.unit.openshift.probe.listener import certificate, listening, unused
from tests.unit.texts import contains

REPOSITORY = "ocp/release"


@pytest.fixture
def pem(tmp_path: Path) -> Path:
    return certificate(tmp_path, "127.0.0.1")


@pytest.fixture
def host(pem: Path) -> Iterator[Hosting]:
    with hosting(pem) as found:
        yield found


@pytest.fixture
def context(project: Project, host: Hosting, pem: Path, tmp_path: Path) -> CheckContext:
    """A check of 5.0, whose installer installs the release image that the registry has."""
    digest = host.push(REPOSITORY, MANIFEST)
    return checking(project, pem, tmp_path, digest, f"{host.host}/{REPOSITORY}")


def checking(project: Project, pem: Path, folder: Path, digest: str, *mirrored: str) -> CheckContext:
    installer = folder / "openshift-install"
    said = ["openshift-install 5.0.2", "built from commit 1", f"release image {RELEASE}@sha256:{digest}"]
    installer.write_text("#!/bin/sh\n" + "\n".join(f"echo {line}" for line in said) + "\n")
    installer.chmod(0o755)
    sources = (Mirror(source=RELEASE, mirrors=mirrored), Mirror(source=PAYLOADS[-1], mirrors=mirrored))
    bundle = pem.read_text().partition("-----END PRIVATE KEY-----\n")[2]
    secret = json.dumps({"auths": {mirrored[0].partition("/")[0]: {"auth": LOGIN}}})
    made = project.context(installer=installer, release="5.0", image_mirrors=sources)
    contents = FileContents(additional_trust_bundle=bundle, pull_secret=Secret(secret))
    return replace(made, contents=contents, seconds=30.0)


def sign(host: Hosting, manifest: Any = SIGNATURE) -> str:
    """Push a signature of the image that the registry has, as cosign tags it; return the digest."""
    (digest,) = [reference.partition(":")[2] for _, reference in host.manifests if reference.startswith("sha256:")]
    host.push(REPOSITORY, manifest, f"sha256-{digest}.sig")
    return digest


def codes(found: list[Diagnostic]) -> list[str]:
    return [f"{each.status} {each.code}" for each in found]


def told(context: CheckContext) -> list[str]:
    return codes(list(mirror(context)))


def of_release(context: CheckContext, release: str, **fields: Any) -> CheckContext:
    sources = (*context.cluster.image_mirrors, Mirror(source=PAYLOADS[0], mirrors=("m.lab/x",)))
    return replace(context, cluster=replace(context.cluster, release=release, image_mirrors=sources, **fields))


def test_a_signed_release(context: CheckContext, host: Hosting) -> None:
    digest = sign(host)
    assert told(context) == []
    assert [path for path, _ in host.asked] == [
        f"/v2/{REPOSITORY}/manifests/sha256:{digest}",
        f"/v2/{REPOSITORY}/manifests/sha256-{digest}.sig",
    ]


@pytest.mark.parametrize("wants", ["Basic", "Bearer"])
def test_the_login_is_that_of_the_pull_secret(context: CheckContext, host: Hosting, wants: str) -> None:
    sign(host)
    host.wants = wants  # type: ignore[assignment] # one of its values
    assert told(context) == []
    unknown = replace(context, contents=replace(context.contents, pull_secret=None))
    (denied,) = mirror(unknown)
    assert codes([denied]) == ["error mirror.denied"]
    assert denied.code == "mirror.denied"
    assert contains(denied.what, "401 (UNAUTHORIZED")


@pytest.mark.parametrize(
    ("release", "status", "command"),
    [
        ("5.0", "error", "oc mirror --v2 --config IMAGESET.yaml --workspace file://WORKSPACE docker://{host}  #"),
        ("4.22", "error", "oc mirror --v2 --config IMAGESET.yaml --workspace file://WORKSPACE docker://{host}  #"),
        ("4.21", "warning", f"oc image mirror {RELEASE}:{{tag}} {{host}}/{REPOSITORY}:{{tag}}  #"),
    ],
)
@pytest.mark.parametrize("manifest", [None, MANIFEST, SIGNATURE | {"layers": 7}])
def test_an_unsigned_release(
    context: CheckContext, host: Hosting, release: str, status: str, command: str, manifest: Any
) -> None:
    if manifest is not None:
        sign(host, manifest)
    (found,) = mirror(of_release(context, release))
    assert codes([found]) == [f"{status} mirror.no-signature"]
    tag = next(path for path, _ in host.asked if path.endswith(".sig")).rpartition("/")[2]
    assert tag in found.what
    assert found.fix.startswith(command.format(host=host.host, tag=tag))


@pytest.mark.parametrize(
    ("release", "feature_set", "expected"),
    [
        ("4.20", None, []),
        ("4.17", "TechPreviewNoUpgrade", ["warning mirror.no-signature"]),
        ("4.16", "TechPreviewNoUpgrade", []),
    ],
)
def test_releases_that_ask_for_no_signature(
    context: CheckContext, host: Hosting, release: str, feature_set: str | None, expected: list[str]
) -> None:
    assert told(of_release(context, release, feature_set=feature_set)) == expected
    assert bool(host.asked) == bool(expected)


@pytest.mark.parametrize(
    ("scope", "expected"),
    [
        (RELEASE, ["warning mirror.no-signature"]),
        ("quay.io", ["warning mirror.no-signature"]),
        (PAYLOADS[0], []),
    ],
)
def test_a_policy_among_the_manifests_asks_for_one(context: CheckContext, scope: str, expected: list[str]) -> None:
    policy = {"kind": "ClusterImagePolicy", "metadata": {"name": "signed"}, "spec": {"scopes": [scope]}}
    folder = context.path.parent / "manifests"
    folder.mkdir()
    (folder / "policy.yaml").write_text(yaml.safe_dump_all([{"kind": "Secret"}, policy]))
    (folder / "broken.yaml").write_text("[")
    (folder / "odd.yaml").write_text("kind: ClusterImagePolicy\nspec: 7")
    assert told(of_release(context, "4.20")) == expected


def test_one_good_mirror_is_enough(project: Project, host: Hosting, pem: Path, tmp_path: Path) -> None:
    host.push(REPOSITORY, MANIFEST)
    digest, dead = sign(host), f"127.0.0.1:{unused()}/x"
    assert told(checking(project, pem, tmp_path, digest, dead, f"{host.host}/{REPOSITORY}")) == []
    host.manifests.popitem()
    both = told(checking(project, pem, tmp_path, digest, dead, f"{host.host}/{REPOSITORY}"))
    assert both == ["warning mirror.unreachable", "error mirror.no-signature"]


def test_another_release_is_mirrored(context: CheckContext, host: Hosting) -> None:
    host.manifests.clear()
    (found,) = mirror(context)
    assert codes([found]) == ["error mirror.no-release"]
    assert "404 (MANIFEST_UNKNOWN)" in found.what


def test_what_does_not_answer_as_a_registry(project: Project, pem: Path, tmp_path: Path) -> None:
    with listening(None, pem=pem) as silent, listening(pem=pem) as web:
        mute = checking(project, pem, tmp_path, "0" * 64, f"127.0.0.1:{silent}/x")
        assert told(replace(mute, seconds=0.5)) == ["warning mirror.unreachable"]
        other = checking(project, pem, tmp_path, "0" * 64, f"127.0.0.1:{web}/x")
        assert told(other) == ["error mirror.invalid"]


def test_a_certificate_that_the_bundle_does_not_cover(context: CheckContext) -> None:
    (found,) = mirror(replace(context, contents=replace(context.contents, additional_trust_bundle=None)))
    assert codes([found]) == ["error mirror.untrusted"]
    assert "additionalTrustBundle" in found.fix


def test_no_secret_is_printed(context: CheckContext, host: Hosting) -> None:
    for wants, refuse in (("Basic", 0), ("Bearer", 0), ("nothing", 403), ("nothing", 500)):
        host.wants, host.refuse = wants, refuse  # type: ignore[assignment] # its values
        found = list(mirror(context))
        assert found
        assert LOGIN not in str(found)


# --- which release image ------------------------------------------------------------------


@pytest.mark.parametrize("text", ["exit 1", "echo openshift-install 5.0.2", "echo release image quay.io/x:5.0"])
def test_an_installer_that_does_not_tell(context: CheckContext, host: Hosting, text: str) -> None:
    assert context.installer is not None
    context.installer.write_text(f"#!/bin/sh\n{text}\n")
    assert told(context) == told(replace(context, installer=None)) == ["unknown mirror.unknown-release"]
    assert host.asked == []


def test_a_release_image_of_another_repository_is_under_no_policy(
    context: CheckContext, host: Hosting, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENSHIFT_INSTALL_RELEASE_IMAGE_OVERRIDE", f"{host.host}/mine@sha256:{'0' * 64}")
    assert told(context) == []
    monkeypatch.setenv("OPENSHIFT_INSTALL_RELEASE_IMAGE_OVERRIDE", f"{RELEASE}:5.0@sha256:{'0' * 64}")
    assert told(context) == ["error mirror.no-release"]


# --- what oc-mirror left ------------------------------------------------------------------


def declared(*sources: str) -> tuple[Mirror, ...]:
    return tuple(Mirror(source=each, mirrors=("m.lab/x",)) for each in sources)


@pytest.mark.parametrize(
    ("release", "sources", "missing"),
    [
        ("4.20", (), None),
        ("4.20", (RELEASE, PAYLOADS[0]), None),
        ("4.20", ("quay.io/openshift-release-dev",), None),
        ("4.20", ("registry.redhat.io",), None),
        ("4.20", (PAYLOADS[0],), RELEASE),
        ("4.20", (RELEASE,), PAYLOADS[0]),
        ("4.20", (RELEASE, PAYLOADS[1]), PAYLOADS[0]),
        ("5.0", (RELEASE,), PAYLOADS[1]),
        ("5.0", (PAYLOADS[1],), RELEASE),
    ],
)
def test_both_repositories_of_a_release_are_mirrored(
    project: Project, release: str, sources: tuple[str, ...], missing: str | None
) -> None:
    found = project.findings(mirror, release=release, image_mirrors=declared(*sources))
    incomplete = [each.what for each in found if each.code == "mirror.incomplete"]
    assert incomplete == ([f"names no mirror of {missing}"] if missing else [])


def test_what_oc_mirror_left_stands_in_the_fix(project: Project) -> None:
    folder = project.folder / "working-dir" / "cluster-resources"
    folder.mkdir(parents=True)
    names = (RELEASE, PAYLOADS[0], "registry.redhat.io/x")
    entries = [{"source": each, "mirrors": ["m.lab:5000/ocp"]} for each in names]
    left = {"kind": "ImageDigestMirrorSet", "spec": {"imageDigestMirrors": [*entries, 7, {"source": "x"}]}}
    (folder / "idms-oc-mirror.yaml").write_text(yaml.safe_dump(left))
    (found,) = project.findings(mirror, release="4.20")
    assert found.fix == (
        f"add {{source: {RELEASE}, mirrors: [m.lab:5000/ocp]}}; {{source: {PAYLOADS[0]}, mirrors: [m.lab:5000/ocp]}}"
    )
    (found,) = project.findings(mirror, release="4.20", image_mirrors=declared(RELEASE))
    assert found.fix == f"add {{source: {PAYLOADS[0]}, mirrors: [m.lab:5000/ocp]}}"
    assert project.findings(mirror, release="4.20", image_mirrors=declared(RELEASE, PAYLOADS[0])) == []
