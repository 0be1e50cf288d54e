"""Glance's import by web-download: Glance itself fetches a URL.

Source: Image API v2, "Interoperable image import" and "Import info"; an image's tasks since 2.12 (Wallaby). Glance
fetches in the background. If the import fails, the image becomes queued again, and one of its tasks contains the
reason.
"""

from __future__ import annotations

from collections.abc import Iterator

from openstack_prep.base.errors import DownloadError, NotFound, ResourceFailed, WaitTimeout
from openstack_prep.base.raw import Values
from openstack_prep.cloud.cloud_run import CloudRun
from openstack_prep.cloud.connection import Cloud
from openstack_prep.core.run import query
from openstack_prep.download import disk_format
from openstack_prep.download.compression import open_packed
from openstack_prep.download.fetching import shown
from openstack_prep.resources.image import glance
from openstack_prep.resources.image.glance import SEALS, ImageRecord, glances_sums
from openstack_prep.resources.image.image_fields import UPLOAD, ImageFields, shown_by_glance

METHOD = "web-download"
COMPUTED = ("sha512", "md5")  # the checksums that Glance computes, unless its administrator has replaced sha512
DEADLINE = 3600.0  # seconds for Glance to fetch and store it
PAUSE = 0.5  # seconds before the second poll, doubled before each further one up to LONGEST
LONGEST = 5.0

# the properties in which Glance's import records its progress and its failures
LOCK, STORES, FAILED = "os_glance_import_task", "os_glance_importing_to_stores", "os_glance_failed_import"


# --- checks ---------------------------------------------------------------------------


def check(image: ImageFields, run: CloudRun) -> Iterator[tuple[str, str]]:
    """Yield what prevents this import of an image, and the fix."""
    assert image.source is not None
    without = "remove import_method"
    methods = _methods(run)
    if METHOD not in methods:
        has = f"only supports {', '.join(methods)}" if methods else "does not support image import"
        yield f"import_method: this Glance {has}", f"{without}, or have its administrator enable {METHOD}"
    algorithm = (image.checksum or "").partition(":")[0]
    if algorithm not in ("", *COMPUTED):
        yield (
            f"checksum: Glance computes no {algorithm} of imported images, so the image cannot be verified",
            f"use sha512 or md5, or {without}",
        )
    if not image.source.startswith(("http://", "https://")):
        yield f"source: {image.source} is a local file, which Glance cannot fetch", f"use a URL, or {without}"
    elif what := shown_by_glance(image.source):
        yield f"source: {what}", UPLOAD
    elif image.compressed_checksum or image.compression not in (None, "none"):
        yield f"source: is compressed, and {METHOD} does not decompress", f"use an uncompressed image, or {without}"
    elif not (image.compression and image.disk_format):
        yield from _check_content(image.source, image.container_format == "compressed")


@query
def _methods(run: CloudRun) -> list[str]:
    try:
        return list(run.admin.image.get("/info/import")["import-methods"]["value"])
    except NotFound:  # before 2.6 (Queens)
        return []


def _check_content(source: str, may_be_packed: bool) -> Iterator[tuple[str, str]]:
    """Read the first bytes; if the spec declares compression and format, no access to the source is needed."""
    try:
        chunks, _, compression = open_packed(source)
    except DownloadError as error:
        yield f"source: {error}", "if Glance can reach the URL anyway, set disk_format and compression: none"
        return
    chunks.close()
    if compression != "none" and not may_be_packed:
        yield (
            f"source: is compressed with {compression}, and {METHOD} does not decompress",
            "use an uncompressed image, or remove import_method",
        )


# --- the import ---------------------------------------------------------------------------


class Import:
    """One image's import."""

    def __init__(self, image: ImageFields) -> None:
        self.image = image
        self.source = image.source or ""

    @property
    def disk_format(self) -> str:
        return self.image.disk_format or disk_format.of_source(self.source, "none")

    def fill(self, maker: Cloud, image_id: str) -> tuple[ImageRecord, dict[str, str | None]]:
        """Have Glance fetch the source, and wait; return the image and its seal.

        Raises ResourceFailed with Glance's reason or if the content is not as declared, and WaitTimeout.
        """
        method = {"name": METHOD, "uri": self.source}
        maker.image.post(f"/images/{image_id}/import", {"method": method})
        raw = self._wait(maker, image_id)
        return raw, self._verify(raw)

    def _wait(self, maker: Cloud, image_id: str) -> ImageRecord:
        import tenacity

        seen: set[str] = set()
        done = tenacity.Retrying(
            retry=tenacity.retry_if_result(lambda found: found is None),
            stop=tenacity.stop_after_delay(DEADLINE),
            wait=tenacity.wait_exponential(PAUSE, max=LONGEST),
            retry_error_callback=lambda state: None,
        )(self._look, maker, image_id, seen)
        if done is None:
            raise WaitTimeout(
                f"image {image_id}: Glance has not imported {shown(self.source)} after {DEADLINE:.0f} s; "
                "check the logs of Glance, or remove import_method"
            )
        return done

    def _look(self, maker: Cloud, image_id: str, seen: set[str]) -> ImageRecord | None:
        """Return the image if the import is complete, None while it is in progress; raises ResourceFailed."""
        found = glance.show(maker, image_id)
        notes = found.properties
        seen.add(found.status)
        if found.status == "active":  # Glance still writes to the image while it holds the lock
            return None if notes.get(LOCK) or notes.get(STORES) else found
        if found.status in ("importing", "uploading", "saving"):
            return None
        task = self._task(maker, image_id)
        if task.get("status") == "failure" or notes.get(FAILED) or "importing" in seen or found.status != "queued":
            raise ResourceFailed(self._failure(image_id, task))
        return None

    def _task(self, maker: Cloud, image_id: str) -> Values:
        """Return the newest of an image's tasks, if Glance lists them; each contains the URL."""
        try:
            answer = maker.image.ask("GET", f"/images/{image_id}/tasks")
        except NotFound:
            return {}
        return max(answer["tasks"], key=lambda task: task["created_at"], default={})

    def _failure(self, image_id: str, task: Values) -> str:
        """Return Glance's reason for a failure; it may repeat the URL in full."""
        reason = str(task.get("message") or "no reason given").replace(self.source, shown(self.source))
        origin = f" (task {task['id']}, request {task.get('request_id')})" if task else ""
        return (
            f"image {image_id}: Glance cannot import {shown(self.source)}: {reason}{origin}; check that Glance can "
            "reach the URL and that disk_format matches its content, or remove import_method"
        )

    def _verify(self, made: ImageRecord) -> dict[str, str | None]:
        known = glances_sums(made)
        algorithm, _, expected = (self.image.checksum or "").partition(":")
        where = f"image {made.id}: what Glance fetched from {shown(self.source)}"
        if self.image.size not in (None, made.size):
            raise ResourceFailed(f"{where} has {made.size} bytes instead of {self.image.size}")
        if algorithm and known.get(algorithm) != expected:
            found = known.get(algorithm, f"none, but {made.os_hash_algo}")
            raise ResourceFailed(
                f"{where} is {made.disk_format} with {algorithm} {found} instead of {expected}; correct the "
                "checksum, use the right file, or remove import_method"
            )
        if self.image.disk_format not in (None, made.disk_format):
            raise ResourceFailed(
                f"{where} was converted to {made.disk_format}, as this Glance converts all imports; remove disk_format "
                "or import_method"
            )
        return {SEALS[kept]: known[kept] for kept in known if kept in SEALS}
