"""The memory of a process that serves: given back early, and bounded, so that the machine goes on.

Both hold for the libraries too, and on Linux alone.
"""

from __future__ import annotations

import ctypes
import sys
from typing import Final

from frazil.errors import InvalidInput

_MIB: Final = 1 << 20
_ARENAS: Final = 2
_M_MMAP_THRESHOLD: Final = -3
_M_ARENA_MAX: Final = -8
"""Numbers of `mallopt(3)`."""


def bound(mebibytes: int) -> None:
    """Let this process allocate no more than this, its threads included; 0 sets no bound."""
    if mebibytes < 0:
        raise InvalidInput(f"the memory is {mebibytes} MiB; expected 0 or more")
    if sys.platform != "linux":
        return
    _give_back_early()
    if mebibytes:
        import resource

        _, hard = resource.getrlimit(resource.RLIMIT_DATA)
        limit = mebibytes * _MIB
        limit = limit if hard == resource.RLIM_INFINITY else min(limit, hard)
        resource.setrlimit(resource.RLIMIT_DATA, (limit, hard))


def _give_back_early() -> None:
    """Have the C library keep little of what was freed: by default each thread may have a heap of
    its own, which stays as large as it ever was."""
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is not None:  # another C library keeps less by itself
        mallopt(_M_ARENA_MAX, _ARENAS)
        mallopt(_M_MMAP_THRESHOLD, _MIB // 4)


__all__ = ["bound"]
