"""The state of one run: the answers that were read, and the ids of resources that were found or created.

Each answer is read once, by the first thread that needs it; other threads wait for it.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Hashable, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from functools import wraps
from typing import Any, Concatenate, ParamSpec, Protocol, Self, TypeVar, cast

from openstack_prep.base.errors import NotFound
from openstack_prep.core.model import Key, Observed, OwnershipTag, Resource

IDS_PER_REQUEST = 50  # within the 8 KiB that servers take for a request line
T = TypeVar("T")
P = ParamSpec("P")


class Reader(Protocol):
    """Stores the answers of queries: a run, or an object based on one."""

    def read_once(self, name: Hashable, read: Callable[[], T]) -> T: ...


R = TypeVar("R", bound=Reader)
V = TypeVar("V")
F = TypeVar("F", bound="Run")


def query(read: Callable[Concatenate[R, P], T]) -> Callable[Concatenate[R, P], T]:
    """Run a function once per run for the same arguments; concurrent callers wait for the answer.

    The function itself is the key of the stored answer, so lists with different fields are never confused.
    """

    @wraps(read)
    def ask(reader: R, /, *args: P.args, **options: P.kwargs) -> T:
        # the function, not its name: two queries of different kinds may have the same name
        name = (read, args, tuple(sorted(options.items())))
        return reader.read_once(name, lambda: read(reader, *args, **options))

    return ask


def fact(read: Callable[Concatenate[F, P], T]) -> Callable[Concatenate[F, P], T]:
    """Run a function once per run, for all of its views: its answer, such as a name, decides nothing."""

    @wraps(read)
    def ask(run: F, /, *args: P.args, **options: P.kwargs) -> T:
        name = (read, args, tuple(sorted(options.items())))
        return run.read_for_all(name, lambda: read(run, *args, **options))

    return ask


class AnswerCache:
    """Answers by name: the first thread that needs one reads it, the others wait for it.

    An error is an answer as well. Without ``keeps_errors`` each thread that has waited for an error reads again.
    """

    def __init__(self, *, keeps_errors: bool = True) -> None:
        self.keeps_errors = keeps_errors
        self._answers: dict[Hashable, Future[Any]] = {}
        self._lock = threading.Lock()

    def once(self, name: Hashable, read: Callable[[], T]) -> T:
        """Return the answer with a name, which is read if nobody has read it yet."""
        # the lock is held for the look only, never while somebody reads
        with self._lock:
            answer: Future[T] | None = self._answers.get(name)
            is_first = answer is None
            if answer is None:
                answer = self._answers[name] = Future()
        if is_first:
            try:
                answer.set_result(read())
            except BaseException as error:  # noqa: BLE001 - raised below, in all threads that need the answer
                if not self.keeps_errors:
                    self.forget(name)  # before the waiting threads wake up, so that a new reader is the first one again
                answer.set_exception(error)
        elif not self.keeps_errors and answer.exception() is not None:
            return read()
        return answer.result()

    def forget(self, *names: Hashable) -> None:
        """Forget answers, so that they are read again."""
        with self._lock:
            for name in names:
                self._answers.pop(name, None)

    def names(self) -> list[Hashable]:
        """Return the names of all answers that somebody has asked for."""
        with self._lock:
            return list(self._answers)


class Run:
    """The state of one run.

    ``homes`` are the projects that the spec works in, its home project first; None is the project of the connection.
    ``progress`` is called during long operations: (key, bytes done, total bytes or None, decompressed bytes or None);
    ``note`` is called with messages of OpenStack about its work for the run: (key, text).
    """

    def __init__(
        self,
        ownership: OwnershipTag,
        *,
        homes: Sequence[Resource | None] = (),
        progress: Callable[[Key, int, int | None, int | None], None] = lambda key, done, total, unpacked: None,
    ) -> None:
        self.ownership = ownership
        self.homes = tuple(homes)
        self.progress = progress
        self.note: Callable[[Key, str], None] = lambda key, text: None
        self.check_lease: Callable[[], None] = lambda: None  # raises LeaseLost if the run may no longer write
        self.known: dict[Key, Observed] = {}
        self.carried_out = False  # whether a plan from these answers has been carried out
        self.wave = Wave()
        self.pending: frozenset[Key] = frozenset()  # what the plan in progress creates or updates
        self.companions: Mapping[tuple[str, str], tuple[str, ...]] = {}  # only for_deletions sets these two
        self.is_patient = True
        self._read, self._facts = AnswerCache(), AnswerCache(keeps_errors=False)

    def fresh(self) -> Self:
        """Return a view of the same run that has read nothing yet but knows the resources that were created."""
        other = self._again()
        other.known, other._facts = self.known, self._facts
        other.progress, other.note = self.progress, self.note
        other.wave, other.check_lease, other.pending = self.wave, self.check_lease, self.pending
        return other

    def for_deletions(self, companions: Mapping[tuple[str, str], tuple[str, ...]], *, is_patient: bool = True) -> Self:
        """Return a view of the same run, with all that it has read, that judges the deletions of a plan together.

        ``companions`` are, by kind and id, the resources that the same list is read for (see ``companions_of``).
        ``is_patient``: a service that does not answer is asked again, as it is for what decides the plan; a plan that
        only shows losses names what it could not read.
        """
        view = self.fresh()
        view._read = self._read
        view.companions, view.is_patient = companions, is_patient
        return view

    def _again(self) -> Self:
        return type(self)(self.ownership, homes=self.homes)

    def companions_of(self, kind: str, thing_id: str) -> tuple[str, ...]:
        """Return the ids of the resources that are judged by the same list as one of a kind, itself among them.

        They are those that the plan deletes, too: what has to be known of each of them is read by one request.
        """
        return self.companions.get((kind, thing_id), (thing_id,))

    def deletes_many(self, kind: str, number: int) -> bool:
        """Whether at least so many of a kind are judged by the same list."""
        return next((len(ids) >= number for (name, _), ids in self.companions.items() if name == kind), False)

    def read_once(self, name: Hashable, read: Callable[[], T]) -> T:
        """Return the result of ``read``, calling it at most once per name; errors are stored as well. See ``query``."""
        return self._read.once(name, read)

    def read_for_all(self, name: Hashable, read: Callable[[], T]) -> T:
        """Return the result of ``read``, called at most once for all views of the run; errors are not stored."""
        return self._facts.once(name, read)

    def look(self, resource: Resource) -> Observed | None:
        """Return the existing counterpart of a resource, from earlier answers or by reading.

        Two types may share a key, and the result for one of them need not suffice for the other: see ``Existing``.
        """
        key = resource.key
        found = self.known.get(key)
        if found is None:
            found = self.read_once((type(resource), key), lambda: type(resource).find(self, [resource]).get(key))
        return found

    def find_id(self, resource: Resource) -> str | None:
        found = self.look(resource)
        return found.id if found else None

    def id(self, resource: Resource) -> str:
        """Return the id of a resource that must exist by now; raises NotFound."""
        found = self.find_id(resource)
        if found is None:
            raise NotFound(f"{resource.key.qualified} exists neither in the spec nor in the cloud")
        return found


# --- one read for all threads that write at the same time -------------------------------


@dataclass
class _Group:
    writers: int = 0
    waiting: int = 0
    answer: Future[object] = field(default_factory=Future)


class Wave:
    """Lets steps that create resources of one kind at the same time share the list request that follows.

    The last thread to end its write reads, so the answer is newer than each of the writes, and many concurrent writes
    cost one list request.
    """

    def __init__(self) -> None:
        self._groups: dict[Hashable, _Group] = {}
        self._lock = threading.Lock()

    def write(self, name: Hashable, write: Callable[[], T], read: Callable[[], V]) -> tuple[T, V]:
        """Return the results of ``write`` and ``read``; an error of ``read`` is raised in all threads of the wave."""
        with self._lock:
            group = self._groups.setdefault(name, _Group())
            group.writers += 1
        try:
            written = write()
        except BaseException:
            self._leave(name, group, read)
            raise
        with self._lock:
            group.waiting += 1
        self._leave(name, group, read)
        return written, cast(V, group.answer.result())

    def _leave(self, name: Hashable, group: _Group, read: Callable[[], object]) -> None:
        with self._lock:
            group.writers -= 1
            if group.writers:
                return
            del self._groups[name]
        if not group.waiting:
            return
        try:
            group.answer.set_result(read())
        except BaseException as error:  # noqa: BLE001 - whoever waits gets it
            group.answer.set_exception(error)
