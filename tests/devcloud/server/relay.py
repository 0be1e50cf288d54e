"""Carries connections to the services of a cloud out of a network namespace, through a socket in the file system.

relay.py outer SOCKET COMMAND...   where the services listen; runs COMMAND, and ends with it
relay.py inner SOCKET PORT...      in the namespace: listens on the same ports, on its own 127.0.0.1
"""

import asyncio
import functools
import os
import sys

from tests.devcloud.server import lifeline

HOST = "127.0.0.1"
BYTES = 65536


async def copy(reader, writer):
    try:
        while chunk := await reader.read(BYTES):
            writer.write(chunk)
            await writer.drain()
        writer.write_eof()
    except ConnectionError:
        writer.close()


async def join(reader, writer, other_reader, other_writer):
    await asyncio.gather(copy(reader, other_writer), copy(other_reader, writer))
    writer.close()
    other_writer.close()


async def outward(socket, port, reader, writer):
    other_reader, other_writer = await asyncio.open_unix_connection(socket)
    other_writer.write(f"{port}\n".encode())
    await join(reader, writer, other_reader, other_writer)


async def arrived(reader, writer):
    port = int(await reader.readline())
    try:
        other_reader, other_writer = await asyncio.open_connection(HOST, port)
    except ConnectionError:
        writer.close()  # refused there, and so here
        return
    await join(reader, writer, other_reader, other_writer)


async def outer(socket, command):
    parent = os.getpid()
    await asyncio.start_unix_server(arrived, socket)
    process = await asyncio.create_subprocess_exec(*command, preexec_fn=lambda: lifeline.die_with(parent))
    return await process.wait()


async def inner(socket, ports):
    for port in map(int, ports):
        await asyncio.start_server(functools.partial(outward, socket, port), HOST, port)
    await asyncio.Event().wait()


def main():
    mode, socket, *words = sys.argv[1:]
    sys.exit(asyncio.run({"outer": outer, "inner": inner}[mode](socket, words)))


if __name__ == "__main__":
    main()
