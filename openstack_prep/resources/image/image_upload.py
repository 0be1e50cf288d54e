"""The ways to upload an image: sent as it is, converted on the way, or fetched by Glance itself."""

from __future__ import annotations

import contextlib
import functools
import os
import shutil
import tempfile
import uuid
from collections.abc import Iterable, Iterator
from typing import IO, TYPE_CHECKING, cast

import tenacity

from openstack_prep.base.errors import (
    CloudError,
    DownloadError,
    NotFound,
    PrepError,
    ResourceFailed,
    WaitTimeout,
    is_transient,
)
from openstack_prep.base.raw import Values
from openstack_prep.cloud.cloud_run import CloudRun
from openstack_prep.core.run import query
from openstack_prep.download import qemu_img
from openstack_prep.download.address import local_path, shown
from openstack_prep.download.compression import open_packed
from openstack_prep.download.installer_cache import Kept, cached
from openstack_prep.download.spool import Shared
from openstack_prep.download.verification import Verified
from openstack_prep.resources.image import glance
from openstack_prep.resources.image.glance import CONVERTED, ID, NAME, PACKED, SEALS, SPEC, ImageRecord, glances_sums
from openstack_prep.resources.image.image_fields import EVERYBODYS, UPLOAD, ImageFields, shown_by_glance

if TYPE_CHECKING:
    from openstack_prep.cloud.connection import Cloud

# --- Glance's import by web-download: Glance itself fetches a URL ----------------------------------------
# Source: Image API v2, "Interoperable image import" and "Import info"; an image's tasks since 2.12 (Wallaby). Glance
# fetches in the background. If the import fails, the image becomes queued again, and one of its tasks contains the
# reason.


METHOD = "web-download"
COMPUTED = ("sha512", "md5")  # the checksums that Glance computes, unless its administrator has replaced sha512
DEADLINE = 3600.0  # seconds for Glance to fetch and store it
PAUSE = 0.5  # seconds before the second poll, doubled before each further one up to LONGEST
LONGEST = 5.0

# the properties in which Glance's import records its progress and its failures
LOCK, STORES, FAILED = "os_glance_import_task", "os_glance_importing_to_stores", "os_glance_failed_import"


# --- checks ---------------------------------------------------------------------------


def _check_import(image: ImageFields, run: CloudRun) -> Iterator[tuple[str, str]]:
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
        return self.image.disk_format or qemu_img.of_source(self.source, "none")

    def fill(self, maker: Cloud, image_id: str) -> tuple[ImageRecord, dict[str, str | None]]:
        """Have Glance fetch the source, and wait; return the image and its seal.

        Raises ResourceFailed with Glance's reason or if the content is not as declared, and WaitTimeout.
        """
        method = {"name": METHOD, "uri": self.source}
        maker.image.post(f"/images/{image_id}/import", {"method": method})
        raw = self._wait(maker, image_id)
        return raw, self._verify(raw)

    def _wait(self, maker: Cloud, image_id: str) -> ImageRecord:
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


TIMEOUT = 600.0  # seconds for Glance to answer after the upload: it may first copy the image to its store


# --- checks ---------------------------------------------------------------------------


def check(image: ImageFields, run: CloudRun) -> Iterator[tuple[str, str]]:
    """Yield what prevents the creation of an image, and the fix."""
    if image.source is None:
        yield _describe_missing(image, run)
    elif image.import_method:
        yield from _check_import(image, run)
    elif not _distant(image.source) and not os.access(local_path(image.source), os.R_OK):
        yield f"source: {image.source} cannot be read", "correct the path, or provide the file"
    elif not _distant(image.source) and image.container_format in (None, "bare"):
        yield from _check_local_content(image, image.source)
    if image.output_format:
        yield from _check_conversion(image)


def _describe_missing(image: ImageFields, run: CloudRun) -> tuple[str, str]:
    """Return what is wrong and a fix; name images of other projects, which OpenStack's clients would use."""
    what, fix = "does not exist, and cannot be created without a source", "set source, or correct the name"
    project_id = run.find_project_id(image.owner)
    passed_over = [each for each in glance.named(run, (image.name,)) if each.owner not in (None, project_id)]
    if not passed_over:
        return what, fix
    ids = ", ".join(f"{each.id} ({each.visibility})" for each in passed_over)
    what += f"; images of other projects with this name are not used unless they are public: {ids}"
    return what, f"{fix}; if you trust its owner, remove this entry and name the image by its id where it is used"


UNINSPECTED = ("aki", "ami", "ari", "ploop", "vhd")
"""Formats that a file without a known beginning may have; a vhd of fixed size has only an end that tells it."""


def _check_local_content(image: ImageFields, source: str) -> Iterator[tuple[str, str]]:
    """Yield why Glance does not accept a local file: by its first bytes, as Glance judges what it receives.

    Source: Glance 33.0.0, location.py (set_data; require_image_format_match is true by default).
    """
    try:
        head = qemu_img.head_of_source(source, image.compression)
    except DownloadError as error:
        yield f"source: {error}", "provide another file"
        return
    if part := qemu_img.unsafe_part(head):
        yield f"source: the image has {part}, which Glance does not accept", "write it with qemu-img convert first"
    found, declared = qemu_img.guess(head), image.disk_format
    is_open = found == "raw" and declared in UNINSPECTED
    if image.output_format is None and declared not in (None, "raw", found) and not is_open:
        yield f"disk_format is {declared}, but {source} is {found}", f"set disk_format: {found}, or remove it"


def _check_conversion(image: ImageFields) -> Iterator[tuple[str, str]]:
    without = "remove output_format"
    if shutil.which(qemu_img.COMMAND) is None:
        yield (
            f"output_format: {qemu_img.COMMAND}, which does the conversion, is not on PATH",
            f"install it (package qemu-utils; on RHEL and Fedora: qemu-img), or {without}",
        )
    if wrong := qemu_img.missing_room(image.size or 0):
        yield f"output_format: {wrong}", f"free some space, set TMPDIR to another folder, or {without}"


def _distant(source: str) -> bool:
    return source.startswith(("http://", "https://"))


# --- the upload ---------------------------------------------------------------------------


def upload(image: ImageFields, run: CloudRun, name: str) -> ImageRecord:
    """Create an image under a name: verified, sealed and shared; an image that failed permanently is deleted."""
    maker, owner = _uploader(image, run)
    with contextlib.ExitStack() as stack:
        way = Import(image) if image.import_method else _Sent(image, run, stack)
        body = _body(image, run, way.disk_format) | owner | {"name": name}
        image_id = _create(maker, body)
        try:
            raw, seal = way.fill(maker, image_id)
        except PrepError as error:
            if not is_transient(error):  # a retry reads first, and finds it
                _delete_failed(maker, image_id, error)
            raise
    sealed = {**seal, "protected": image.protected}
    changes = [glance.operation(path, value) for path, value in sealed.items() if value is not None]
    raw = glance.patch(run, raw, changes)
    if image.shared_with:
        image.share(run, raw)
    return raw


def _create(maker: Cloud, body: Values) -> str:
    """Create an image without content, whose ownership tag names its own id, and return the id.

    Glance takes the id from the request (33.0.0, api/v2/images.py, RequestDeserializer.create). So if the answer is
    lost, the same request is sent once more, and cannot create a second image: 409 shows that the first one exists.
    """
    image_id = new_id()
    named = body | {"id": image_id, ID: image_id}
    try:
        maker.image.post("/images", named)
    except CloudError as error:
        if not is_transient(error):
            raise
        try:
            maker.image.post("/images", named)
        except CloudError as again:
            if again.status != 409:
                raise
    return image_id


def new_id() -> str:
    return str(uuid.uuid4())


def _delete_failed(maker: Cloud, image_id: str, error: PrepError) -> None:
    """Delete an image that failed permanently; if the deletion fails, too, report both errors.

    They have the status of the first one: after 410 a concurrent run may have deleted the image, whose content Glance
    may still be removing, so that it refuses to delete it once more (Glance 33.0.0, api/v2/image_data.py, upload).
    """
    try:
        maker.image.delete(f"/images/{image_id}")
    except CloudError as left:
        message = f"image {image_id} could not be deleted: {left}; run the command again, which deletes it first"
        raise CloudError(f"{error}; {message}", status=getattr(error, "status", None)) from error


def _uploader(image: ImageFields, run: CloudRun) -> tuple[Cloud, dict[str, str]]:
    """Return the connection that uploads the image, and the owner fields for the body."""
    tenant = None if image.visibility in EVERYBODYS else run.find_tenant(image.owner)
    if tenant is not None:
        return tenant, {}
    return run.admin, {"owner": run.id(image.owner)} if image.owner else {}


def _body(image: ImageFields, run: CloudRun, disk_format: str) -> Values:
    sizes = {"min_disk": image.min_disk, "min_ram": image.min_ram}
    return {
        "disk_format": disk_format,
        "container_format": image.container_format or "bare",
        "visibility": image.visibility or ("shared" if image.shared_with else "private"),
        "tags": list(image.tags or ()),
        **{field: value for field, value in sizes.items() if value is not None},
        **(image.properties or {}),
        SPEC: run.ownership.spec,
        NAME: image.name,
    }


class _Sent:
    """Upload one image from here; ``stack`` closes what it opens."""

    def __init__(self, image: ImageFields, run: CloudRun, stack: contextlib.ExitStack) -> None:
        self.source = _content(image, run)
        self.held = self.source  # Glance must compute the same checksums
        self.chunks: Iterable[bytes] = self.source
        self.seal: dict[str, str | None] = {}
        if image.cached_as and self.source.source == image.source:  # and is not read from the cache
            digits = cast("str", image.checksum).partition(":")[2]
            self.chunks = stack.enter_context(Kept(self.source, image.cached_as, digits))
        if image.output_format:
            self._convert(image, stack)
        else:
            self.disk_format = image.disk_format or self.source.disk_format()

    def _convert(self, image: ImageFields, stack: contextlib.ExitStack) -> None:
        """Copy the content here and convert it to raw, in unnamed files, which vanish however the process ends."""
        self.disk_format = cast("str", image.output_format)
        file = _stored(self.chunks, _nameless(stack))
        found = qemu_img.of_source(_path(file), "none")
        if found not in ("qcow2", "raw"):
            raise PrepError(
                f"{image.key}: converting {found} is not supported; use a qcow2 image, or remove output_format"
            )
        if found == "qcow2":
            raw = _nameless(stack)
            qemu_img.to_raw(file, raw, str(image.key))
            file = raw
        algorithm, _, digits = (image.checksum or "").partition(":")
        self.seal = {CONVERTED: found}
        if algorithm:
            self.seal[SEALS[algorithm]] = digits
        self.held = self.chunks = Verified(
            _path(file), compression="none", algorithms=("sha256", "sha512"), progress=self.source.progress
        )

    def fill(self, maker: Cloud, image_id: str) -> tuple[ImageRecord, dict[str, str | None]]:
        """Send the content; return the image and its seal. Raises DownloadError, ResourceFailed."""
        try:
            maker.image.request(
                "PUT",
                f"/images/{image_id}/file",
                data=self.chunks,
                headers={"Content-Type": "application/octet-stream"},
                timeout=TIMEOUT,
                once=True,
            )
        except CloudError as error:
            if error.status != 415:
                raise
            wrong = f"Glance found no valid {self.disk_format} image in it; correct disk_format, or use the right file"
            raise ResourceFailed(f"{error}: {wrong}", status=error.status) from error
        raw = glance.show(maker, image_id)
        glance.compare(raw, self.held.digests)
        came = {SEALS["sha256"]: self.source.digests.get("sha256"), PACKED: self.source.compressed_checksum}
        return raw, came | self.seal


def _content(image: ImageFields, run: CloudRun) -> Verified:
    """Return the content, shared if the run shares contents: from the installer's cache, or else from the source."""
    assert image.source is not None
    algorithm, _, digits = (image.checksum or "").partition(":")
    url = image.cached_as or image.source
    near = cached(url, digits) if _distant(url) and algorithm == "sha256" else None
    as_it_is = near is not None or (image.container_format == "compressed" and image.compression is None)
    contents = run.admin.contents
    make = functools.partial(Shared, contents) if contents else Verified
    return make(
        near or image.source,
        image.checksum,
        compression="none" if as_it_is else image.compression,
        compressed_checksum=None if near else image.compressed_checksum,
        size=image.size,
        algorithms=("sha256", "sha512"),
        progress=lambda done, total, unpacked: run.progress(image.key, done, total, unpacked),
    )


def _nameless(stack: contextlib.ExitStack) -> IO[bytes]:
    return stack.enter_context(tempfile.TemporaryFile())


def _stored(chunks: Iterable[bytes], file: IO[bytes]) -> IO[bytes]:
    for chunk in chunks:
        try:
            file.write(chunk)
        except OSError as error:
            folder = tempfile.gettempdir()
            raise PrepError(f"{folder}: {error.strerror}; free some space, or set TMPDIR to another folder") from error
    return file


def _path(file: IO[bytes]) -> str:
    file.flush()
    return f"/dev/fd/{file.fileno()}"
