"""A ceiling for the memory of a process: what would exceed it fails, and the machine goes on."""

from __future__ import annotations

import sys

from frazil.errors import InvalidInput

_MIB = 1 << 20


def set_ceiling(mebibytes: int) -> None:
    """Let this process allocate no more than this, its libraries and threads included; 0 sets no
    ceiling. Linux alone counts what a process allocates."""
    if mebibytes < 0:
        raise InvalidInput(f"the memory is {mebibytes} MiB; expected 0 or more")
    if not mebibytes or sys.platform != "linux":
        return
    import resource

    _, hard = resource.getrlimit(resource.RLIMIT_DATA)
    wanted = mebibytes * _MIB
    if hard != resource.RLIM_INFINITY:
        wanted = min(wanted, hard)
    resource.setrlimit(resource.RLIMIT_DATA, (wanted, hard))


__all__ = ["set_ceiling"]
