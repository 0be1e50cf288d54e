"""Runs one of Swift's four stock servers.

python -m tests.devcloud.server.swift swift-KIND HOME PORT
"""

import importlib
import sys

from tests.devcloud.server import middleware

PACKAGES = {"proxy": "proxy", "account": "account", "container": "container", "object": "obj"}


def main():
    name, home, _port = sys.argv[1:]
    kind = name.removeprefix("swift-")
    middleware.sign_requests(name)
    sys.argv = [name, f"{home}/etc/swift/{kind}.conf", "-v"]
    importlib.import_module(f"swift.{PACKAGES[kind]}.server").main()


if __name__ == "__main__":
    main()
