"""A background thread that runs one job at a time."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor


class Background:
    """Runs a job while its caller continues. The thread starts with the first job."""

    def __init__(self) -> None:
        self._thread: ThreadPoolExecutor | None = None
        self._job: Future[None] | None = None

    def run(self, job: Callable[[], None]) -> None:
        """Start a job once the previous one has finished; raises what that one failed with."""
        self.wait()
        self._thread = self._thread or ThreadPoolExecutor(1, thread_name_prefix="frazil")
        self._job = self._thread.submit(job)

    def wait(self) -> None:
        """Wait for the running job; raises what it failed with."""
        job, self._job = self._job, None
        if job is not None:
            job.result()

    def close(self) -> None:
        """Wait, and end the thread."""
        try:
            self.wait()
        finally:
            if self._thread is not None:
                self._thread.shutdown()
                self._thread = None
