"""Which requests are worked on, which wait, which are sent away; and bodies within their limits.

Requests are worked on in lanes, each with threads of its own, so that plans and SQL never keep a
commit waiting. A request has its place until its thread is done with it, also when the client has
gone: work that is abandoned counts as much as work that is waited for.
"""

from __future__ import annotations

import asyncio
from collections import Counter, OrderedDict, deque
from collections.abc import Awaitable, Callable, MutableMapping
from concurrent.futures import Future, ThreadPoolExecutor
from threading import Lock
from typing import Any, TypeVar

from frazil.serve.limits import MAX_BODIES_BYTES, MAX_BODY_PAUSE_S, MAX_BODY_S
from frazil.serve.rest_errors import RestError, overloaded

Result = TypeVar("Result")
_Job = tuple[Callable[[], Any], "Future[Any]"]


class Lane:
    """Some threads and the requests that wait for them.

    Principals are served in rotation, and none of them has all threads: one that asks for much
    makes itself wait. Without tokens there is one principal, None, which may have them all.
    """

    def __init__(
        self, name: str, *, threads: int, max_waiting: int, max_per_principal: int | None = None
    ) -> None:
        self._name = name
        self._max_running = threads
        self._max = threads + max_waiting
        self._max_per_principal = max_per_principal
        self._threads = ThreadPoolExecutor(threads, thread_name_prefix=f"frazil-{name}")
        self._waiting: OrderedDict[str | None, deque[_Job]] = OrderedDict()
        self._running: Counter[str | None] = Counter()
        self._by_principal: Counter[str | None] = Counter()
        """Running and waiting."""
        self._lock = Lock()

    @property
    def busy(self) -> int:
        """Requests that are worked on or wait."""
        return self._by_principal.total()

    def check(self, principal: str | None) -> None:
        """429 or 503 when a request would find no place."""
        limit = self._max_per_principal
        if principal is not None and limit is not None and self._by_principal[principal] >= limit:
            raise overloaded(
                f"{principal} has {limit} {self._name} requests under way; wait for their answers",
                is_own=True,
            )
        if self.busy >= self._max:
            raise overloaded(f"too many {self._name} requests (limit {self._max}); retry later")

    def run(self, principal: str | None, work: Callable[[], Result]) -> Future[Result]:
        """Have something done on a thread of the lane; 429 or 503 when there is no place."""
        outcome: Future[Result] = Future()
        with self._lock:
            self.check(principal)
            self._by_principal[principal] += 1
            self._waiting.setdefault(principal, deque()).append((work, outcome))
            self._start()
        return outcome

    def _start(self) -> None:
        """Give free threads to those that wait, with the lock held."""
        while self._running.total() < self._max_running:
            principal = next(filter(self._may_run, self._waiting), _NOBODY)
            if isinstance(principal, _Nobody):
                return
            jobs = self._waiting.pop(principal)
            work, outcome = jobs.popleft()
            if jobs:  # behind the others
                self._waiting[principal] = jobs
            self._running[principal] += 1
            self._threads.submit(self._do, principal, work, outcome)

    def _may_run(self, principal: str | None) -> bool:
        max_running = self._max_running if principal is None else max(1, self._max_running - 1)
        return self._running[principal] < max_running

    def _do(self, principal: str | None, work: Callable[[], Any], outcome: Future[Any]) -> None:
        result: Any = None
        error: BaseException | None = None
        try:
            result = work()
        except BaseException as raised:
            error = raised
        with self._lock:
            self._running[principal] -= 1
            self._by_principal[principal] -= 1
            if not self._by_principal[principal]:
                del self._by_principal[principal], self._running[principal]
            self._start()
        if error is None:
            outcome.set_result(result)
        else:
            outcome.set_exception(error)


class _Nobody:
    """No principal, not even the one without a name."""


_NOBODY = _Nobody()


class Bodies:
    """The bytes of all bodies that are in memory."""

    def __init__(self, max_bytes: int = MAX_BODIES_BYTES) -> None:
        self._max = max_bytes
        self._held = 0
        self._lock = Lock()

    @property
    def held(self) -> int:
        """Bytes in memory now."""
        return self._held

    def take(self, size: int) -> None:
        """Count bytes that have arrived; 503 when there is no room for them."""
        with self._lock:
            if self._held + size > self._max:
                raise overloaded("the server is receiving too many large requests; retry later")
            self._held += size

    def give_back(self, size: int) -> None:
        """Bytes that are not needed any more."""
        with self._lock:
            self._held -= size


Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]


class Gone(Exception):
    """The client closed the connection."""


class Body:
    """The bytes of one body, counted until they are given back."""

    def __init__(self, bodies: Bodies) -> None:
        self._bodies = bodies
        self.size = 0

    async def receive(
        self, receive: Receive, *, stated: str | None, max_bytes: int, timeout_s: float
    ) -> bytes:
        """All of it. 413 when it is too large, which a stated length tells at once; 408 when it
        does not arrive in time; Gone when the client has left."""
        if stated is not None and stated.isdigit() and len(stated) < 20 and int(stated) > max_bytes:
            raise _too_large(max_bytes)
        chunks: list[bytes] = []
        within_s = min(timeout_s, MAX_BODY_S)
        try:
            async with asyncio.timeout(within_s) as timer:
                end = timer.when()
                assert end is not None
                has_more = True
                while has_more:
                    pause = asyncio.get_running_loop().time() + MAX_BODY_PAUSE_S
                    timer.reschedule(min(end, pause))
                    message = await receive()
                    if message["type"] != "http.request":
                        raise Gone
                    chunk = message.get("body", b"")
                    self._count(len(chunk), max_bytes)
                    chunks.append(chunk)
                    has_more = bool(message.get("more_body"))
        except TimeoutError:  # nothing has been done
            raise RestError(
                408,
                "RequestTimeoutException",
                f"the body did not arrive in {within_s:g} s, or paused for {MAX_BODY_PAUSE_S:g} s",
            ) from None
        return b"".join(chunks)

    def _count(self, size: int, max_bytes: int) -> None:
        if self.size + size > max_bytes:
            raise _too_large(max_bytes)
        self._bodies.take(size)
        self.size += size

    def give_back(self) -> None:
        """It is not needed any more."""
        size, self.size = self.size, 0
        self._bodies.give_back(size)


def _too_large(max_bytes: int) -> RestError:
    return RestError(413, "RequestTooLargeException", f"the body is over {max_bytes} bytes")


__all__ = ["Bodies", "Body", "Gone", "Lane", "Message", "Receive"]
