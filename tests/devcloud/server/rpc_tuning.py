"""Makes oslo.messaging's in-memory transport deliver at once, and lets idle threads sleep.

As it comes, each listener looks for messages every 50 ms, so that a call costs 25 ms on average,
and booting a server a dozen of them; and some twenty idle listeners keep a core warm.
The threads that work on messages, 64 per listener, wake up every second to see whether their executor has stopped
(futurist 3.5.0, _thread.py, ThreadWorker): 390 times per second and cloud, which takes 4 % of a core.
"""

import threading
import time

from futurist import _thread
from oslo_messaging._drivers import impl_fake

from tests.devcloud.server.shadow import Shadow

IDLE_SECONDS = 60.0  # how often a thread that gets nothing looks whether it has been stopped


class Deliveries:
    """Counts deliveries, so that a listener can tell whether it missed one since it last looked."""

    def __init__(self):
        self._changed = threading.Condition()
        self._count = 0
        self._looked = threading.local()

    def add(self):
        with self._changed:
            self._count += 1
            self._changed.notify_all()

    def look(self):
        """The calling thread looks into a queue, the first of those that it will."""
        if getattr(self._looked, "at", None) is None:
            self._looked.at = self._count

    def wait(self, seconds):
        """Instead of a sleep: until something has come since the thread looked."""
        at, self._looked.at = getattr(self._looked, "at", None), None
        with self._changed:
            self._changed.wait_for(lambda: self._count != at, IDLE_SECONDS if seconds >= 0.05 else seconds)


def tune():
    """Call before any listener starts."""
    deliveries = Deliveries()
    deliver_message, poll = impl_fake.FakeExchange.deliver_message, impl_fake.FakeExchange.poll

    def deliver_and_tell(self, *args, **options):
        deliver_message(self, *args, **options)
        deliveries.add()

    def look_and_poll(self, *args):
        deliveries.look()
        return poll(self, *args)

    impl_fake.FakeExchange.deliver_message = deliver_and_tell
    impl_fake.FakeExchange.poll = look_and_poll
    impl_fake.time = Shadow(time, sleep=deliveries.wait)
    _thread.ThreadWorker.MAX_IDLE_FOR = IDLE_SECONDS  # work itself wakes a thread at once
