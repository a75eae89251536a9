"""Work that is done behind its caller: one job at a time, in a thread."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor


class OneBehind:
    """Runs a job while its caller goes on. The next one waits for it, and hears of its failure."""

    def __init__(self) -> None:
        self._thread: ThreadPoolExecutor | None = None
        self._job: Future[None] | None = None

    def run(self, job: Callable[[], None]) -> None:
        """Start a job; call `wait` before."""
        self._thread = self._thread or ThreadPoolExecutor(1, thread_name_prefix="frazil-behind")
        self._job = self._thread.submit(job)

    def wait(self) -> None:
        """Wait for the job that runs; raises what it failed with."""
        job, self._job = self._job, None
        if job is not None:
            job.result()

    def end(self) -> None:
        """Wait, and let the thread go."""
        try:
            self.wait()
        finally:
            if self._thread is not None:
                self._thread.shutdown()
                self._thread = None
