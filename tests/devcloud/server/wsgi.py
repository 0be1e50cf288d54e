"""The HTTP server in front of a project's WSGI application."""

import selectors
import threading
from socket import SHUT_RDWR

from cheroot import wsgi


class Gateway(wsgi.Gateway_10):
    """Lets the application reach the connection, to break it on demand, but not by accident.

    Glance closes the body that it has read; cheroot would close the connection's reader with it,
    and answer 500 to a next request that had not been sent yet.
    """

    def get_environ(self):
        self.req.rfile.close = lambda: None
        own = {"devcloud.socket": self.req.conn.socket, "devcloud.refuse": self.req.server.refuse}
        return {**super().get_environ(), **own}


class Server(wsgi.Server):
    """Can refuse new connections for a while; the kernel does it, as for a service that is down."""

    def refuse(self, seconds):
        selector = self._connections._selector  # of the pinned cheroot
        try:
            selector.unregister(self.socket)
        except KeyError:  # it refuses already
            return
        self.socket.shutdown(SHUT_RDWR)

        def accept_again():
            self.socket.listen(self.request_queue_size)
            selector.register(self.socket, selectors.EVENT_READ, data=self)

        threading.Timer(seconds, accept_again).start()


def server(application, port, threads):
    """A server that listens already; its ``serve()`` does not return.

    Connections are kept alive and have TCP_NODELAY, both by default.
    """
    made = Server(("127.0.0.1", port), application, numthreads=threads, request_queue_size=128, timeout=60)
    made.gateway = Gateway
    made.keep_alive_conn_limit = 1000  # of ten, its default, the eleventh is closed after every answer
    made.prepare()
    return made
