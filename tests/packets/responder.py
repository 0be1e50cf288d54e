"""A small server that answers every request with the name of its machine: ``responder.py NAME CERTIFICATE PORT...``.

Ports 80 and 1936 speak HTTP, all others HTTPS.  It listens on all addresses, virtual ones included.  An answer takes
several packets as large as the way allows.
"""

from __future__ import annotations

import http.server
import socket
import ssl
import sys
import threading

PLAIN = (80, 1936)
SIZE = 8192
"""Bytes of an answer: the name, and blanks."""


class Handler(http.server.BaseHTTPRequestHandler):
    name = ""

    def do_GET(self) -> None:
        body = self.name.encode().ljust(SIZE)
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Say nothing."""


class Server(http.server.ThreadingHTTPServer):
    address_family = socket.AF_INET6  # and IPv4, by addresses such as ::ffff:10.0.0.5
    daemon_threads = True


def main() -> None:
    Handler.name, certificate, *ports = sys.argv[1:]
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate)
    threads = []
    for port in map(int, ports):
        server = Server(("::", port), Handler)
        if port not in PLAIN:
            server.socket = context.wrap_socket(server.socket, server_side=True, do_handshake_on_connect=False)
        threads.append(threading.Thread(target=server.serve_forever))
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


if __name__ == "__main__":
    main()
