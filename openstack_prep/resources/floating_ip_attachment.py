"""Floating IPs on ports: put there, never stolen, taken off again only by whom put them there.

Source: Networking API v2.0, "Floating IPs"; OpenShift installer docs/source, "What gets created,
names and tags": the installer itself takes a floating IP from the port it serves without a word.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self

from openstack_prep.errors import Mistake, NotFound, PlanRefused, SpecError
from openstack_prep.fields import Address, Name
from openstack_prep.installer.naming import foreign_tags
from openstack_prep.model import Change, Context, Key, Mark, Observed, Resource
from openstack_prep.resources.floating_ip import AttachedFloatingIP, FloatingIP
from openstack_prep.resources.port import of_another, ports_of
from openstack_prep.resources.project import ByTenant
from openstack_prep.site import Site, only_one

LONGEST_DESCRIPTION = 255
ATTACHED = "~attached"

Raw = Mapping[str, Any]


@dataclass(frozen=True, kw_only=True)
class FloatingIPAttachment(ByTenant, AttachedFloatingIP):
    """A floating IP on a port that exists already, in the same project.

    Say which floating IP by one of ``floating_ip``, ``address`` and ``floating_ip_id``.  Ours is an
    attachment of a floating IP of this spec, or one that we noted in the floating IP's description by
    the request that made it; destroy detaches no other, and none that has moved to another port.
    """

    kind: ClassVar[str] = "floating_ip_attachment"

    port: Name
    """Name of the port, exact and unique in its project."""
    floating_ip: Name | None = None
    """Name of a floating IP of this spec."""
    address: Address | None = None
    """Address of a floating IP of the project."""
    floating_ip_id: Name | None = None
    """Id of a floating IP of the project."""
    tag: Name | None = None
    """KEY=VALUE that the port carries, or will: a port with another value for that key is refused."""
    move: bool = False
    """Consent to take the floating IP from the port that it serves now."""

    @property
    def name(self) -> str:
        return self.port

    @property
    def label(self) -> str:
        return self.floating_ip or self.address or self.floating_ip_id or ""

    def desired(self) -> dict[str, Any]:
        return {"floating_ip": self.label, "port": self.port}

    def needs(self) -> Iterable[Key]:
        return (*super().needs(), *((self.key_of(FloatingIP.kind, self.floating_ip),) if self.floating_ip else ()))

    def resolve(self, context: Context) -> Sequence[Resource]:
        """Take the address from the floating IP of that name: one that was adopted carries no mark."""
        given = [each for each in (self.floating_ip, self.address, self.floating_ip_id) if each]
        if len(given) != 1:
            raise SpecError(
                [self.mistake("does not say which floating IP", "give one of floating_ip, address, floating_ip_id")]
            )
        wanted = self.key_of(FloatingIP.kind, self.floating_ip or "")
        named = [each for each in context.declared(FloatingIP) if each.key == wanted]
        if self.floating_ip and not named:
            what = f"floating_ip {self.floating_ip} is not in this spec"
            raise SpecError([self.mistake(what, "declare it, or give its address")])
        return (replace(self, address=named[0].address) if named else self,)

    # --- what is there --------------------------------------------------------------------

    @classmethod
    def find(cls, site: Site, wanted: Sequence[Self]) -> Mapping[Key, Observed]:
        found = {}
        for each in wanted:
            raw = each._floating_ip(site)
            if raw is not None and raw["port_id"]:
                found[each.key] = each._observe(site, raw)
            each._port(site)  # two of the name are refused before all else
        return found

    @classmethod
    def scan(cls, site: Site, owner: Resource | None) -> Iterator[tuple[Self, Observed]]:
        """Yield the attachments that this spec noted in a floating IP's description."""
        project_id = site.find_project_id(owner)
        for raw in FloatingIP.listing(site, project_id) if project_id else ():
            port = _attached_mark(site).owns(raw["description"]) and Mark.name_in(raw["description"])
            if port and raw["port_id"]:
                declared = cls(port=port, address=raw["floating_ip_address"], **cls.placing(owner))
                yield declared, declared._observe(site, raw)

    def _floating_ip(self, site: Site) -> Raw | None:
        project_id = site.find_project_id(self.owner)
        listed = FloatingIP.listing(site, project_id) if project_id else []
        marked = [raw for raw in listed if self.floating_ip and site.mark.owns(raw["description"], self.floating_ip)]
        if self.floating_ip_id:
            return next((raw for raw in listed if raw["id"] == self.floating_ip_id), None)
        if self.address:
            return next((raw for raw in listed if raw["floating_ip_address"] == self.address), None)
        return min(marked, key=_staying, default=None)

    def _port(self, site: Site) -> Raw | None:
        listed = ports_of(site, site.find_project_id(self.owner))
        return only_one((port for port in listed if port["name"] == self.port), str(self.key))

    def _observe(self, site: Site, raw: Raw) -> Observed:
        port = self._port(site)
        here = port is not None and raw["port_id"] == port["id"]
        noted = _attached_mark(site).owns(raw["description"], self.port) or site.mark.owns(raw["description"])
        return Observed(
            id=raw["id"],
            ours=here and noted,
            values={"floating_ip": self.label, "port": self.port if here else self._served(site, raw)},
            outputs={"address": raw["floating_ip_address"]},
            handle=raw,
        )

    def _served(self, site: Site, raw: Raw) -> str:
        """Return the port that a floating IP serves, by name and id as far as they are known."""
        listed = ports_of(site, site.find_project_id(self.owner))
        names = [port["name"] for port in listed if port["id"] == raw["port_id"] and port["name"]]
        return " ".join([*names, raw["port_id"]])

    def check(self, site: Site, observed: Observed | None) -> Iterable[Mistake]:
        raw, port = self._floating_ip(site), self._port(site)
        if raw is None and not self.floating_ip:
            yield self.mistake(f"no floating IP {self.label} in the project", "allocate it, or correct it")
        if observed is not None and observed.values["port"] != self.port and not self.move:
            yield self._taken(site, observed.handle)
        if port is None:
            yield self.mistake("no port of exactly that name in the project", "wait for it, or correct the name")
            return
        if self.tag and (foreign := foreign_tags(port["tags"], self.tag)):
            yield of_another(str(self.key), port, foreign)
        project_id = site.find_project_id(self.owner)
        for other in FloatingIP.listing(site, project_id) if project_id else ():
            if other["port_id"] == port["id"] and (raw is None or other["id"] != raw["id"]):
                has = f"the port has the floating IP {other['floating_ip_address']} already"
                yield self.mistake(has, "detach that one first, or name it here")

    def _taken(self, site: Site, raw: Raw) -> Mistake:
        serves = f"{raw['floating_ip_address']} serves another port: {self._served(site, raw)}"
        return self.mistake(serves, "detach it there, choose another, or consent to moving it (move: true, --move)")

    # --- the verbs ------------------------------------------------------------------------

    def create(self, site: Site) -> Observed:
        """Attach it, looking once more: the floating IP may be new, and must not be another's meanwhile."""
        now = site.fresh()
        raw, port = self._floating_ip(now), self._port(site)
        if raw is None or port is None:
            raise NotFound(f"{self.key}: the {'floating IP' if raw is None else 'port'} is gone")
        if raw["port_id"] not in (None, port["id"]) and not self.move:
            raise PlanRefused([self._taken(site, raw)])
        return self._observe(site, self._put(site, raw, port["id"], self._noted(site, raw)))

    def update(self, site: Site, observed: Observed, changes: Sequence[Change]) -> Observed:
        return self.create(site)

    def delete(self, site: Site, observed: Observed) -> None:
        raw, note = observed.handle, _attached_mark(site)
        mine = note.owns(raw["description"], self.port)
        self._put(site, raw, None, note.strip(raw["description"]) if mine else raw["description"])

    def _noted(self, site: Site, raw: Raw) -> str:
        """Return a description that says who attached it, unless it carries a spec's mark already."""
        text = raw["description"] or ""
        plain = Mark.strip(text)
        noted = _attached_mark(site).describe(self.port, plain)
        owned = plain != text and f"{ATTACHED}/" not in text.removeprefix(plain)
        return text if owned or len(noted) > LONGEST_DESCRIPTION else noted

    def _put(self, site: Site, raw: Raw, port_id: str | None, description: str) -> dict[str, Any]:
        """Change it unless somebody else did since we looked: 412 is read again by the executor."""
        cloud, _ = site.worker(self.owner)
        answer = cloud.network.put(
            f"/floatingips/{raw['id']}",
            {"floatingip": {"port_id": port_id, "description": description}},
            headers={"If-Match": f"revision_number={raw['revision_number']}"},
        )
        return dict(answer["floatingip"])


def _staying(raw: Raw) -> tuple[bool, str, str]:
    """Sort twins as ``twin.choose`` does: one in use first, then the oldest."""
    return (raw["port_id"] is None, raw.get("created_at") or "", raw["id"])


def _attached_mark(site: Site) -> Mark:
    """Return the mark of floating IPs that are not ours, but that we put on their ports."""
    return Mark(f"{site.mark.spec}{ATTACHED}")
