"""Around every API: writes the logs of requests, and misbehaves where tests ask for it."""

import itertools
import json
import os
import time

from tests.devcloud.faults import SIGNATURE, Faults
from tests.devcloud.server import effects

REQUEST_ID = ("x-openstack-request-id", "x-trans-id")


def sign_requests(service):
    """Let requests of this process tell whose they are, beside the user agent they have."""
    import requests

    send = requests.Session.send

    def signed(self, request, **options):
        agent = request.headers.get("User-Agent", "")
        request.headers["User-Agent"] = f"{os.fsdecode(agent)} {SIGNATURE}{service}"
        return send(self, request, **options)

    requests.Session.send = signed


def filter_factory(_global_config, **config):
    """For Swift's pipeline, which is made of paste filters."""
    return lambda application: Watch(application, "swift-proxy", config["home"])


class Watch:
    """WSGI middleware of one service."""

    def __init__(self, application, service, home):
        self.application = application
        self.service = service
        self.faults = Faults(f"{home}/run/faults.json", service)
        self.log, self.begun = (
            os.open(f"{home}/log/{name}-{service}.log", os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
            for name in ("access", "begun")
        )
        self.numbers = itertools.count()

    def __call__(self, environ, start_response):
        number = f"{os.getpid()}-{next(self.numbers)}"
        path = environ.get("SCRIPT_NAME", "") + environ.get("PATH_INFO", "")
        agent = environ.get("HTTP_USER_AGENT", "")
        self.note(number=number, method=environ["REQUEST_METHOD"], path=path, internal=SIGNATURE in agent)
        try:
            return self.answer(environ, start_response)
        finally:
            self.note(number=number)

    def answer(self, environ, start_response):
        started = time.monotonic()
        method, agent = environ["REQUEST_METHOD"], environ.get("HTTP_USER_AGENT", "")
        path = environ.get("SCRIPT_NAME", "") + environ.get("PATH_INFO", "")
        answer = Answer(start_response)
        fault = self.faults.hit(method, path, agent)
        if fault and fault.delay and not fault.effect:
            self.faults.wait(fault)
        if self.faults.remembers and SIGNATURE not in agent and method == "GET":
            body = effects.remembering(self.faults, self.application, environ, answer.start, fault)
        elif fault and fault.effect:
            body = effects.apply(fault, self.application, environ, answer.start)
        elif fault and fault.status:
            body = [fault.body.encode()]
            answer.start(f"{fault.status} Fault", [*fault.headers.items()])
        else:
            body = answer.of(self.application, environ)
        # The line is written before the answer leaves: whoever has the answer finds the line.
        self.write(
            time=round(time.time(), 6),
            method=method,
            path=path,
            query=environ.get("QUERY_STRING", ""),
            status=answer.status,
            user_agent=agent,
            request_id=answer.request_id,
            milliseconds=round((time.monotonic() - started) * 1000, 3),
            fault=bool(fault),
        )
        if fault and fault.drop_answer:
            effects.hang_up(environ)
        return body

    def write(self, **fields):
        """One line in one write: lines of several threads do not mix."""
        os.write(self.log, f"{json.dumps(fields)}\n".encode())

    def note(self, **fields):
        """Write that a request has begun, or ended."""
        os.write(self.begun, f"{json.dumps(fields)}\n".encode())


class Answer:
    """What start_response was told."""

    def __init__(self, start_response):
        self._start_response = start_response
        self.status = 0
        self.request_id = ""

    def start(self, status, headers, exc_info=None):
        self.status = int(status.split()[0])
        named = {name.lower(): value for name, value in headers}
        self.request_id = next((named[name] for name in REQUEST_ID if name in named), "")
        return self._start_response(status, headers, exc_info)

    def of(self, application, environ):
        """The application's answer, run until its status is known."""
        body = application(environ, self.start)
        if self.status:
            return body
        chunks = iter(body)
        first = list(itertools.islice(chunks, 1))
        return Body(itertools.chain(first, chunks), body)


class Body:
    """An answer's chunks; closing them closes what the application gave."""

    def __init__(self, chunks, original):
        self._chunks = chunks
        self._original = original

    def __iter__(self):
        return self._chunks

    def close(self):
        if hasattr(self._original, "close"):
            self._original.close()
