"""What all drivers share: the JSON loop, clocks, memory. Standard library only."""

from __future__ import annotations

import json
import os
import resource
import sys
import time
import traceback
from collections.abc import Callable
from typing import Any


class Skip(Exception):
    """The peer cannot do this; the message says why and appears in the report."""


def peak_kb() -> int:
    """The process's peak resident memory so far.

    From /proc where there is one: `ru_maxrss` begins with the peak of the process that started
    this one.
    """
    try:
        with open("/proc/self/status") as status:
            for line in status:
                if line.startswith("VmHWM:"):
                    return int(line.split()[1])
    except OSError:
        pass
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


def forget_peak() -> None:
    """Make the peak of resident memory what the process holds now, where the system can."""
    try:
        with open("/proc/self/clear_refs", "w") as request:
            request.write("5")
    except OSError:
        pass


_processor_ms: list[float] = []


def timed(work: Callable[[], Any]) -> tuple[float, Any]:
    """Milliseconds and the result; processor time of all threads is kept for `drain`."""
    cpu = time.process_time()
    began = time.perf_counter()
    result = work()
    spent = (time.perf_counter() - began) * 1000
    _processor_ms.append((time.process_time() - cpu) * 1000)
    return spent, result


def drain() -> list[float]:
    """Processor milliseconds of every timed call since the last drain."""
    found = list(_processor_ms)
    _processor_ms.clear()
    return found


def measured(work: Callable[[], Any]) -> dict[str, Any]:
    """Time, processor time of all threads and peak memory of a call; what it gave as `result`."""
    forget_peak()
    ms, result = timed(work)
    return {"ms": ms, "cpu": _processor_ms[-1], "peak_kb": peak_kb(), "result": result}


def compete(count: int, commit: Callable[[int], int], refresh: Callable[[], Any]) -> dict[str, Any]:
    """Commit `count` times against other processes; `commit` returns how often it retried.

    A commit that fails after the library's own retries is tried once more on a fresh view, then
    given up. `ms` is how long each commit took, `at` the time when it had landed, `cpu` the
    processor time of all, in milliseconds.
    """
    landed = retries = 0
    cpu = time.process_time()
    ms: list[float] = []
    at: list[float] = []
    for number in range(count):
        began = time.perf_counter()
        for attempt in range(2):
            try:
                retries += commit(number)
            except Exception:
                if attempt == 0:
                    refresh()
                    retries += 1
            else:
                landed += 1
                at.append(time.time())
                break
        ms.append((time.perf_counter() - began) * 1000)
    spent = (time.process_time() - cpu) * 1000
    return {
        "asked": count,
        "landed": landed,
        "retries": retries,
        "ms": ms,
        "at": at,
        "cpu": spent,
    }


def serve(driver: Any) -> None:
    """Answer requests, one JSON object a line, until the input ends.

    Standard output carries answers only; whatever libraries print goes to standard error.
    """
    answers = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)
    sys.stdout = sys.stderr
    for line in sys.stdin:
        request = json.loads(line)
        operation = request.pop("op")
        try:
            work = drain if operation == "drain" else getattr(driver, operation)
            answer = {"result": work(**request)}
        except Skip as reason:
            answer = {"skip": str(reason)}
        except BaseException as error:
            traceback.print_exc()
            answer = {"error": f"{type(error).__name__}: {error}"}
        answers.write(json.dumps(answer, default=str) + "\n")
