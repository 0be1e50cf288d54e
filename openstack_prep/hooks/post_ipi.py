"""After ``openshift-install create cluster``: floating IPs on the virtual ports, pairs on the nodes."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from openstack_prep import api, openshift
from openstack_prep.cloud import Cloud
from openstack_prep.errors import ConfigError, Mistake, SpecError
from openstack_prep.openshift import Metadata
from openstack_prep.openshift_names import tag
from openstack_prep.plan import Plan, Report
from openstack_prep.resources import FloatingIPAttachment
from openstack_prep.resources.port import wait_for_port
from openstack_prep.spec import Spec

METADATA = Path("metadata.json")


def post_ipi(
    cloud: Cloud,
    *,
    metadata: str | Path | None = None,
    infra_id: str | None = None,
    ingress_floating_ip: str | None = None,
    api_floating_ip: str | None = None,
    vips: Sequence[str] = (),
    wait: float = 0,
    move: bool = False,
) -> Report:
    """Put right what the installer leaves undone, in the project that the connection is scoped to.

    The cluster is known by its metadata.json or its infraID; floating IPs by address or id.  ``wait``:
    seconds for the virtual ports to appear.  ``move``: consent to take a floating IP from another
    port.  Nothing is done to what is right already.  Raises SpecError, WaitTimeout, PlanRefused.
    """
    spec = _spec(
        cluster(metadata, infra_id),
        ingress_floating_ip=ingress_floating_ip,
        api_floating_ip=api_floating_ip,
        vips=vips,
        move=move,
    )
    _wait(cloud, spec, wait)
    return api.apply(cloud, spec)


def cluster(metadata: str | Path | None, infra_id: str | None) -> Metadata:
    """Return the cluster meant; of both given, the file must speak of that infraID."""
    if metadata is None and infra_id is None:
        raise SpecError([Mistake("cluster", "is not named", "give its metadata.json or its infraID")])
    if metadata is None:
        return openshift.rebuild_metadata(infra_id or "")
    found = openshift.read_metadata(metadata)
    if infra_id not in (None, found.infra_id):
        what = f"is that of {found.infra_id}, not of {infra_id}"
        raise SpecError([Mistake(str(metadata), what, "give one of them, or the right file")])
    return found


def _spec(metadata: Metadata, **wanted: Any) -> Spec:
    """Return the repairs, marked with the infraID."""
    resources = openshift.repairs(metadata, **wanted)
    if not resources:
        nothing = Mistake(
            "post-ipi", "has nothing to do", "give an address for ingress or the API, or virtual addresses"
        )
        raise SpecError([nothing])
    return Spec(metadata.infra_id, resources)


def _wait(cloud: Cloud, spec: Spec, seconds: float) -> None:
    """Wait for the ports to attach to, before planning: so that the plan is whole, and Ctrl-C ends it."""
    for each in spec.resources:
        if isinstance(each, FloatingIPAttachment) and seconds > 0:
            wait_for_port(cloud, each.port, tag=tag(spec.name), seconds=seconds)


# --- the command --------------------------------------------------------------------------


def add_command(
    command: Callable[..., argparse.ArgumentParser], carry_out: Callable[[argparse.Namespace, Cloud, Plan], int]
) -> None:
    """Add ``post-ipi``; ``carry_out`` asks for consent, applies a plan and prints."""

    def run(options: argparse.Namespace) -> int:
        from openstack_prep.cloud import connect

        metadata = cluster(_metadata_file(options), options.infra_id)
        spec = _spec(
            metadata,
            ingress_floating_ip=options.ingress_ip,
            api_floating_ip=options.api_ip,
            vips=options.vip,
            move=options.move,
        )
        cloud = connect(options.os_cloud or metadata.cloud)
        _wait(cloud, spec, options.wait)
        return carry_out(options, cloud, api.plan(cloud, spec, jobs=options.jobs))

    parser = command("post-ipi", run, "after openshift-install: floating IPs to the virtual ports, pairs to the nodes")
    which = parser.add_mutually_exclusive_group()
    which.add_argument("--metadata", type=Path, metavar="FILE", help="the installer's metadata.json (./metadata.json)")
    which.add_argument("--infra-id", metavar="ID", help="instead of a metadata.json that is lost")
    parser.add_argument("--ingress-ip", metavar="ADDR", help="floating IP, by address or id, for the ingress port")
    parser.add_argument("--api-ip", metavar="ADDR", help="floating IP, by address or id, for the API port")
    parser.add_argument("--vip", action="append", default=[], metavar="ADDR", help="allow it on all nodes; repeatable")
    parser.add_argument("--wait", type=float, default=0, metavar="SECONDS", help="wait that long for the ports (0)")
    parser.add_argument("--move", action="store_true", help="consent to take a floating IP from another port")
    parser.add_argument("--yes", "-y", action="store_true", help="do not ask")


def _metadata_file(options: argparse.Namespace) -> Path | None:
    given: Path | None = options.metadata
    if given is None and options.infra_id is None:
        if not METADATA.exists():
            raise ConfigError("there is no metadata.json here; give --metadata FILE or --infra-id ID")
        return METADATA
    return given
