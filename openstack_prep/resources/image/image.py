"""Images: streamed from a file or URL into Glance, and never active with a wrong checksum.

Source: Image API v2, "Images", "Image data", "Image properties"; os_hash_value since 2.7 (Rocky).

Glance sets the states of images itself, so an image of this spec is trusted only if it has a seal: the sha256 of its
content, written after the content was verified. An image without a seal (queued, saving, or active) was left behind by
a killed run, or belongs to a concurrent upload; nothing distinguishes the two. So a new image is uploaded next to it,
and the first finished image is kept: the others are deleted, and an upload whose image is deleted that way uses the
finished one.
"""

from __future__ import annotations

import contextlib
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Self, cast

from openstack_prep.base import shell
from openstack_prep.base.codes import Code
from openstack_prep.base.errors import Loss, Mistake, NotFound, PlanRefused, ResourceFailed
from openstack_prep.cloud.cloud_run import CloudRun, only_one
from openstack_prep.core.deletion_loss import Deletion, DeletionLoss, Finding, LossEffect, Unchecked
from openstack_prep.core.model import Change, Key, Observed, Resource
from openstack_prep.core.resource import Unguarded
from openstack_prep.core.twin import choose, settle, with_twins
from openstack_prep.resources.cascades import row as cascades
from openstack_prep.resources.cascades.compute import guest_text, servers_outside
from openstack_prep.resources.image import glance, image_upload
from openstack_prep.resources.image.glance import ID, NAME, PACKED, SEALS, SPEC, ImageRecord, is_sealed, sums
from openstack_prep.resources.image.image_fields import EVERYBODYS, ImageFields
from openstack_prep.resources.network.uses import of_image

SAID = ("disk_format", "container_format", "visibility", "min_disk", "min_ram", "protected")
"""Fields that Glance reports in the same form as a spec."""


USUAL_NUMBER = 128
"""Default of image_tag_quota and image_property_quota."""
OWN_PROPERTIES = len((SPEC, NAME, ID))
EARLY_TAG = (
    "not managed: its ownership tag is from 1.0.0rc1 or earlier, and copies of an image carry that, too; "
    "to manage it, set adopt: permanently"
)
"""Why destroy keeps an image, or a copy of one, whose tag does not name the image's id."""


@dataclass(frozen=True)
class Family:
    """The image that represents a declared one, and all images that runs of this spec created for it."""

    image: ImageRecord
    members: tuple[ImageRecord, ...]
    left_out: tuple[DeletionLoss | Unchecked, ...] = ()
    """The projects and servers of others that lose the image by the declared visibility."""


@dataclass(frozen=True, kw_only=True)
class Image(ImageFields, Unguarded):
    """An image of the project; without a source it must already exist, and may be a public one.

    Without a checksum, any content with that name is accepted. If the checksum changes, the new content is uploaded
    next to the old one (NAME-new) and takes its name once it is verified. It keeps what others have set at the old one:
    visibility, members with their answers, tags and properties other than checksums and signatures of the content. Plan
    refuses a new content that would lose any of it, and one for an image that somebody else has protected. Compressed
    content is decompressed during the upload, in one pass and without a temporary file. An image that an OpenShift
    installer has cached with the right sha256 is taken from its cache. If this spec shares an image that it does not
    manage, destroy keeps the members. An image that somebody renames, such as to keep it, is no longer managed.
    """

    # --- existing state -------------------------------------------------------------------

    @classmethod
    def find(cls, run: CloudRun, wanted: Sequence[Self]) -> Mapping[Key, Observed]:
        """Find images among all of their projects, which a scan reads as well; others only count if these have none."""
        found = {}
        missing = []
        for each in wanted:
            project_id = run.find_project_id(each.owner)
            observed = each._among(run, glance.owned(run, project_id), project_id) if project_id else None
            if observed is not None:
                found[each.key] = observed
            elif each._may_be_of_others:
                missing.append((each, project_id))
        others = glance.named(run, tuple(sorted({each.name for each, _ in missing}))) if missing else []
        for each, project_id in missing:
            if observed := each._among(run, others, project_id):
                found[each.key] = observed
        return found

    @property
    def _may_be_of_others(self) -> bool:
        """Whether a public image of another project represents it, if its project has none.

        A community image never does: anybody may call one like it (Glance 33.0.0, policies/image.py,
        communitize_image), whereas only administrators make images public.
        """
        return (self.source is None and self.rhcos is None) or self.visibility == "public"

    @classmethod
    def scan(cls, run: CloudRun, owner: Resource | None) -> Iterator[tuple[Self, Observed]]:
        """Yield the images that a project owns; images with the same name in the spec are one resource."""
        project_id = run.find_project_id(owner)
        families: dict[tuple[bool, str], list[ImageRecord]] = defaultdict(list)
        for image in glance.owned(run, project_id) if project_id else ():
            ours = _is_ours(run, image)
            families[ours, image.properties[NAME] if ours else image.name].append(image)
        for (ours, name), family in families.items():
            image = next((image for image in family if image.name == name), family[0])
            same = {field: value for field in SAID if (value := getattr(image, field))}
            declared = cls(name=name, **same, **cls.placing(owner))
            yield declared, declared._observed(run, image, family if ours else [])

    @classmethod
    def scan_tagged(cls, run: CloudRun, owner: Resource | None) -> Iterator[tuple[Self, Observed]]:
        """Yield the images of ``scan`` as not protected by the spec: somebody else may have protected them."""
        for declared, observed in cls.scan(run, owner):
            yield replace(declared, protected=None), observed

    def _among(self, run: CloudRun, listed: Iterable[ImageRecord], project_id: str | None) -> Observed | None:
        """Return the image that represents this one, with all images that runs of this spec created for it."""
        within = [image for image in listed if image.owner == project_id]
        family = [image for image in within if _is_ours(run, image) and image.properties.get(NAME) == self.name]
        finished = [image for image in family if image.name == self.name and is_sealed(image)]
        if len(finished) > 1:
            return self._choose_twin(run, finished, family)
        if not finished and family:
            found = self._observed(run, family[0], family)
            return replace(found, values=self.desired() | {"status": "incomplete"})
        candidates = finished or [image for image in within if image.name == self.name]
        if not candidates and self._may_be_of_others:
            candidates = [image for image in listed if image.name == self.name and image.visibility == "public"]
        standing = only_one(candidates, str(self.key))
        return self._observed(run, standing, family) if standing is not None else None

    def _choose_twin(
        self, run: CloudRun, finished: Sequence[ImageRecord], family: Sequence[ImageRecord]
    ) -> Observed | None:
        """Return which of several finished images is kept; images with undeclared content come last."""
        equal = [image for image in finished if self._is_good(image)] or finished
        chosen = choose(self._twin(run, image) for image in equal)
        if chosen is None:
            return None
        twins = {twin.id for twin in chosen.twins}
        left = [image for image in family if image.id not in twins]
        observed = self._observed(run, chosen.record_as(Family).image, left)
        return replace(observed, twins=chosen.twins, used_by=chosen.used_by, created_at=chosen.created_at)

    def _twin(self, run: CloudRun, image: ImageRecord) -> Observed:
        observed = self._observed(run, image, [image])
        return replace(observed, used_by=of_image(run, image.id).others, created_at=image.created_at)

    def _observed(self, run: CloudRun, image: ImageRecord, family: Sequence[ImageRecord]) -> Observed:
        ours = image in family
        has = image.properties
        return Observed(
            id=image.id,
            ours=ours,
            managed_by=has.get(SPEC, "") if has.get(SPEC) != run.ownership.spec else "",
            contained_ids=frozenset(each.id for each in family) - {image.id},
            kept_because=EARLY_TAG if image.has_early_tag else "",
            values={name: getattr(image, name, None) for name in self.desired()}
            | {
                "status": "incomplete" if ours and len(family) > 1 else image.status,
                "checksum": self._sum(image),
                "compressed_checksum": has.get(PACKED),
                "properties": {name: has[name] for name in self.properties or () if name in has},
                "tags": frozenset(image.tags) & frozenset(self.tags or ()),
                "shared_with": self._sharing(run, image),
            },
            record=Family(image, tuple(family), tuple(self._left_out(run, image))),
        )

    def _left_out(self, run: CloudRun, image: ImageRecord) -> Iterator[DeletionLoss | Unchecked]:
        if self.visibility not in ("private", "shared"):
            return
        if image.visibility in EVERYBODYS:
            allowed = {image.owner, *map(run.find_id, self.members())}
            yield from servers_outside(run, image.id, frozenset(filter(None, allowed)))
        elif self.visibility == "private":
            for project_id in glance.answers(run, image):  # only of a shared image
                detail = guest_text(run, {"id": project_id})
                yield DeletionLoss(effect=LossEffect.CUT_OFF, kind="project", id=project_id, detail=detail)

    def list_taken(self, observed: Observed) -> Iterable[DeletionLoss | Unchecked]:
        return observed.record_as(Family).left_out

    def _sharing(self, run: CloudRun, image: ImageRecord) -> frozenset[str]:
        """Return the declared projects that are members and have answered the invitation."""
        if not self.shared_with:
            return frozenset()
        answers = glance.answers(run, image)
        decided = {project_id for project_id, answer in answers.items() if answer != "pending"}
        return frozenset(member.name for member in self.members() if run.find_id(member) in decided)

    def _sum(self, image: ImageRecord) -> str | None:
        """Return an image's checksum by the declared algorithm, as far as it is known."""
        algorithm = (self.checksum or "").partition(":")[0]
        known = sums(image)
        return f"{algorithm}:{known[algorithm]}" if algorithm in known else None

    # --- checks ---------------------------------------------------------------------------

    def check(self, run: CloudRun, observed: Observed | None) -> Iterable[Mistake]:
        if self.rhcos is not None:
            return  # the metadata could not be read, which is reported already
        status = observed.values["status"] if observed else "incomplete"
        sums = {name: value for name, value in self.desired().items() if name in ("checksum", "compressed_checksum")}
        other = observed is not None and any(observed.values.get(name) != value for name, value in sums.items())
        if observed and self.takes_over and not observed.ours and not observed.managed_by:
            yield from self._check_taking_over(run, observed.record_as(Family).image)
        if status not in ("active", "incomplete"):
            own = ", reactivate it, or delete it" if observed and observed.ours else ", or ask its owner"
            yield self.mistake(f"exists, but is {status}", f"wait until it is active{own}")
        elif other and observed and not observed.ours:
            ((name, value),) = sums.items()
            content = observed.values[name] or f"unknown {value.partition(':')[0]}"
            fix = "correct the checksum, or choose another name"
            if observed.kept_because:
                fix = "apply it with its present checksum and adopt: permanently first, or choose another name"
            yield self.mistake(
                f"exists, is {observed.owner}, and its content differs: {content}", fix, Code.PLAN_FOREIGN
            )
        elif other or status == "incomplete":
            yield from (self.mistake(*each) for each in image_upload.check(self, run))
            if observed is not None and observed.ours:
                yield from self._check_carrying(run, observed.record_as(Family).members)

    def _check_carrying(self, run: CloudRun, family: Iterable[ImageRecord]) -> Iterable[Mistake]:
        """Refuse what a new image cannot take over from the old one, which is deleted then."""
        for old in self._superseded(family, self._find_good(family)):
            if self.protected is None:
                yield from self._check_protection(old)
            if signed := [name for name in glance.SIGNED if name in old.properties]:
                yield self._loss("property", old, signed, "sign the new content", "remove these properties first")
            if self._stays_shared and not cascades.sees_everything(run):
                # Glance 33.0.0, policies/image.py, modify_member: its project or an administrator
                own = {run.find_id(member) for member in self.members()}
                members = glance.answers(run, old).items()
                if decided := [each for each, answer in members if answer != "pending" and each not in own]:
                    yield self._loss(
                        "member", old, decided, "answer for members", "apply it as a user with the role admin"
                    )

    def _loss(self, kind: str, old: ImageRecord, lost: Sequence[str], verb: str, fix: str) -> Mistake:
        what = f"its new content would lose {', '.join(lost)} of image {old.id}: this user cannot {verb}"
        addresses = tuple(f"{kind}/{old.id}/{each}" for each in lost)
        return Loss(str(self.key), what, fix, (self.key,), code=Code.PLAN_LOSES, lost=addresses)

    @property
    def _stays_shared(self) -> bool:
        """Whether the new image has the members of the old one: the spec declares no other visibility."""
        return self.visibility in (None, "shared")

    def _check_taking_over(self, run: CloudRun, image: ImageRecord) -> Iterable[Mistake]:
        if image.owner != run.find_project_id(self.owner):
            yield self.mistake(
                "belongs to another project, so this spec cannot manage it",
                "set adopt: true instead of adopt: permanently",
            )
        elif image.status == "active" and not _seals(image):
            yield self.mistake(
                "has no checksum in Glance, so its content cannot be verified later", "upload the image again"
            )

    def list_unchecked(self, run: CloudRun, changes: Sequence[Change] | None) -> Iterator[str]:
        """Yield numbers beyond the defaults of Glance, which shows its limits to nobody (33.0.0, common/config.py)."""
        for name, own in (("tags", 0), ("properties", OWN_PROPERTIES)):
            number = len(getattr(self, name) or ()) + own
            if number > USUAL_NUMBER:
                yield f"{number} {name} of one image (Glance allows {USUAL_NUMBER} by default)"

    # --- the verbs ------------------------------------------------------------------------

    def create(self, run: CloudRun) -> Observed:
        image = self._leave_one(run, [])
        return self._observed(run, image, [image])

    def update(self, run: CloudRun, observed: Observed, changes: Sequence[Change]) -> Observed:
        record = observed.record_as(Family)
        image = self._leave_one(run, record.members) if observed.ours else record.image
        before = self._observed(run, image, [image] if observed.ours else [])
        differing = {name: value for name, value in self.desired().items() if before.values[name] != value}
        shared = differing.pop("shared_with", None)
        if operations := glance.operations(differing, image):
            image = glance.patch(run, image, operations)
        if shared:
            self.share(run, image)
        return self._observed(run, image, [image] if observed.ours else [])

    def take_over(self, run: CloudRun, observed: Observed) -> Observed:
        """Set our properties, and a seal of the stored content: an image without a seal counts as left behind.

        Properties that describe the original of a copy are removed.
        """
        image = observed.record_as(Family).image
        if not (seals := _seals(image)):
            raise ResourceFailed(f"image {image.id} has no checksum in Glance; upload the image again")
        properties = dict.fromkeys(image.copied) | seals
        properties |= {SPEC: run.ownership.spec, NAME: self.name, ID: image.id}
        image = glance.patch(run, image, [glance.operation(name, value) for name, value in properties.items()])
        return self._observed(run, image, [image])

    def check_delete(self, run: CloudRun, observed: Observed, going: frozenset[str]) -> Iterable[Mistake]:
        """Yield the protection of images that the spec does not declare as protected, whoever has set it."""
        for image in observed.record_as(Family).members:
            yield from self._check_protection(image)

    def _check_protection(self, image: ImageRecord) -> Iterable[Mistake]:
        if image.protected and not self.protected:
            fix = f"if nobody needs it: openstack image set --unprotected {shell.quote(image.id)}"
            yield self.mistake(
                f"image {image.id} is protected, and the spec does not declare that", fix, Code.STILL_USED
            )

    @classmethod
    def find_losses(cls, run: CloudRun, deletions: Sequence[Deletion], going: frozenset[str]) -> Iterable[Finding]:
        """Yield what others lose, without the projects that the spec itself declares."""
        own = (run.find_id(project) for deletion in deletions for project in cast(Image, deletion.resource).members())
        return cascades.find_losses(run, deletions, going.union(filter(None, own)))

    def delete(self, run: CloudRun, observed: Observed) -> None:
        record = observed.record_as(Family)
        for image in record.members if observed.ours else (record.image,):
            glance.delete(run, image)

    def _leave_one(self, run: CloudRun, family: Sequence[ImageRecord]) -> ImageRecord:
        """Leave exactly one image: verified, with the right content, under its own name.

        Whichever request is the last of a killed run, the next run calls this function again.
        """
        good = self._find_good(family)
        uploaded = good is None
        if good is None:
            # an imported image is active before it is verified, so it has a temporary name
            temporary = self.import_method or self._finished(family)
            good = image_upload.upload(self, run, self._new if temporary else self.name)
        family = self._still_ours(run, family)  # others may have changed it since the plan
        standing = self._finished(family)
        if refusals := list(self._check_carrying(run, family)):
            raise PlanRefused(refusals)
        for old in self._superseded(family, good):
            good = glance.carry_over(run, old, good, self.desired().keys())
        if good.name != self.name:
            for image in standing:
                glance.patch(run, image, [glance.operation("name", self._old)])
            good = glance.patch(run, good, [glance.operation("name", self.name)])
        for image in family:
            if image.id != good.id:
                glance.delete(run, image)
        if uploaded:
            self._resolve_concurrent(run, good)
        return good

    def _finished(self, family: Iterable[ImageRecord]) -> list[ImageRecord]:
        return [image for image in family if image.name == self.name and is_sealed(image)]

    def _still_ours(self, run: CloudRun, family: Iterable[ImageRecord]) -> list[ImageRecord]:
        """Return images as they are now, without those that somebody has deleted or renamed."""
        now = []
        for image in family:
            with contextlib.suppress(NotFound):
                now.append(glance.show(run.admin, image.id))
        return [image for image in now if _is_ours(run, image)]

    def _find_good(self, family: Iterable[ImageRecord]) -> ImageRecord | None:
        return min(filter(self._is_good, family), key=lambda image: image.name != self.name, default=None)

    def _superseded(self, family: Iterable[ImageRecord], good: ImageRecord | None) -> Sequence[ImageRecord]:
        """Return the finished images that have the name, and whose place the good one takes."""
        return [image for image in self._finished(family) if good is None or image.id != good.id]

    def _resolve_concurrent(self, run: CloudRun, mine: ImageRecord) -> None:
        """Delete unfinished images of concurrent or killed runs; agree with others which finished one stays."""
        names, project_id = glance.names_of(self.name), run.find_project_id(self.owner)

        def look() -> Observed | None:
            now = run.fresh()
            found = self._among(now, glance.named(now, names), str(project_id))
            return replace(found, contained_ids=frozenset()) if found else None  # what is unfinished uses no twin

        found = look()
        unfinished = found.record_as(Family).members if found else ()
        for image in unfinished:
            if not is_sealed(image):
                glance.delete(run, image)
        if found is not None and {twin.id for twin in with_twins(found)} - {mine.id}:
            settle(self.key, mine.id, look, lambda own: glance.delete(run, own.record_as(Family).image))

    def _is_good(self, image: ImageRecord) -> bool:
        if self.checksum is None and self.compressed_checksum not in (None, image.properties.get(PACKED)):
            return False
        return image.status == "active" and is_sealed(image) and self.checksum in (None, self._sum(image))


def _is_ours(run: CloudRun, image: ImageRecord) -> bool:
    return image.spec == run.ownership.spec


def _seals(image: ImageRecord) -> dict[str, str]:
    """Return properties that seal an existing image with its known checksums."""
    return {SEALS[algorithm]: value for algorithm, value in sums(image).items() if algorithm in SEALS}
