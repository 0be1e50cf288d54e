"""Glance: the content of images, of which only size and checksums are kept."""

from __future__ import annotations

import asyncio
import hashlib
from dataclasses import dataclass, field
from typing import Any

from tests.light.apis import IMAGE
from tests.light.services.glance import found
from tests.light.state import now
from tests.light.web import NOTHING, Answer, Receive, Refused, Request

LARGE = 2**20
"""Bytes from which a thread computes the checksums, while other requests are answered."""
MAGIC = b"QFI\xfb"
HEAD = 32


@dataclass
class _Content:
    size: int = 0
    head: bytes = b""
    sums: tuple[Any, ...] = field(default_factory=lambda: (hashlib.md5(usedforsecurity=False), hashlib.sha512()))

    def add(self, data: bytes) -> None:
        self.size += len(data)
        self.head = (self.head + data[:HEAD])[:HEAD]
        for each in self.sums:
            each.update(data)

    @property
    def virtual_size(self) -> int:
        """Size of the disk: what a qcow2 file says (QEMU, docs/interop/qcow2.txt), or of the content itself."""
        return int.from_bytes(self.head[24:32], "big") if self.head.startswith(MAGIC) else self.size


async def _read(receive: Receive) -> _Content:
    content, held, size, more = _Content(), list[bytes](), 0, True
    while more:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise Refused(400, "the client has gone")
        held.append(message.get("body", b""))
        size += len(held[-1])
        more = message.get("more_body", False)
        if size >= LARGE:
            await asyncio.to_thread(content.add, b"".join(held))
            held, size = [], 0
    content.add(b"".join(held))
    return content


@IMAGE.on("PUT", "/v2/images/{}/file", streams=True)
async def upload(asked: Request, receive: Receive, image_id: str) -> Answer:
    row = found(asked, image_id, to_write=True)
    if row["status"] != "queued":
        raise Refused(409, f"Image status transition from {row['status']} to saving is not allowed")
    change, images = asked.cloud.images.change, asked.cloud.images
    change(row, {"status": "saving"})
    try:
        content = await _read(receive)
    except Refused:
        change(row, {"status": "queued"})
        raise
    if image_id not in images.rows:
        raise Refused(410, "Image not found")
    md5, sha512 = (each.hexdigest() for each in content.sums)
    values = {"size": content.size, "virtual_size": content.virtual_size, "checksum": md5, "os_hash_algo": "sha512"}
    change(row, values | {"os_hash_value": sha512, "status": "active", "updated_at": now(), "stores": "file"})
    return NOTHING
