"""The HTTP server in front of a project's WSGI application."""

from cheroot import wsgi


class Gateway(wsgi.Gateway_10):
    """Lets the application reach the connection, to break it on demand."""

    def get_environ(self):
        return {**super().get_environ(), "devcloud.socket": self.req.conn.socket}


def server(application, port, threads):
    """A server that listens already; its ``serve()`` does not return.

    Connections are kept alive and have TCP_NODELAY, both by default.
    """
    made = wsgi.Server(("127.0.0.1", port), application, numthreads=threads, request_queue_size=128, timeout=60)
    made.gateway = Gateway
    made.keep_alive_conn_limit = 1000  # of ten, its default, the eleventh is closed after every answer
    made.prepare()
    return made
