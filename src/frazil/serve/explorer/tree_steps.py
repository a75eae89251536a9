"""A tree as a step from another one that the page has: what both share is not sent again.

A leaf never changes, so its name, entries, size and bounds are known once it was seen. A step
names the leaves that stay as runs of places in the other tree and sends those that are new, the
dead positions that differ, and how places on a column's scale moved.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

FIXED = ("id", "name", "entries", "bytes", "rows", "kind", "format_version", "written_by")
"""What never changes about a leaf."""
_TEXTS = ("lo_text", "hi_text", "nulls")
_NEAR = 3e-5
_NEW = -1


def step(before: Mapping[str, Any], after: Mapping[str, Any]) -> dict[str, Any]:
    """The tree `after`, for a page that has `before`."""
    old, new = before["leaves"], after["leaves"]
    known = {id: at for at, id in enumerate(old["id"])}
    origin = [known.get(id, _NEW) for id in new["id"]]
    fresh = [at for at, was in enumerate(origin) if was == _NEW]
    dead = {
        str(at): new["dead"][at]
        for at, was in enumerate(origin)
        if was == _NEW or new["dead"][at] != old["dead"][was]
    }
    earlier = {column["id"]: column for column in before["columns"]}
    return {
        **after,
        "base": before["snapshot"],
        "leaves": {
            "runs": _runs(origin),
            **{name: [new[name][at] for at in fresh] for name in FIXED},
            "dead": dead,
            "dead_bins": {at: bins for at, bins in new["dead_bins"].items() if at in dead},
            "fresh": new["fresh"],
            "died": new["died"],
        },
        "columns": [
            _column(earlier.get(column["id"]), column, origin, fresh) for column in after["columns"]
        ],
    }


def _runs(origin: Sequence[int]) -> list[list[int]]:
    """Runs of leaves: where each starts in the other tree, -1 for new ones, and how many."""
    runs: list[list[int]] = []
    for was in origin:
        if runs and (
            (was == _NEW and runs[-1][0] == _NEW)
            or (was != _NEW and runs[-1][0] != _NEW and was == sum(runs[-1]))
        ):
            runs[-1][1] += 1
        else:
            runs.append([was, 1])
    return runs


def _column(
    old: Mapping[str, Any] | None,
    new: Mapping[str, Any],
    origin: Sequence[int],
    fresh: Sequence[int],
) -> dict[str, Any]:
    if old is None:
        return dict(new)
    leaves = new["leaves"]
    sent: dict[str, Any] = {name: [leaves[name][at] for at in fresh] for name in _TEXTS}
    kept = [at for at, was in enumerate(origin) if was != _NEW]
    moved = _moved(old["leaves"], leaves, [(origin[at], at) for at in kept])
    chosen = range(len(origin)) if moved is None else fresh
    for name in ("lo", "hi"):
        sent[name] = [leaves[name][at] for at in chosen]
    return {**new, "leaves": {**sent, "moved": moved}}


def _moved(
    old: Mapping[str, Any], new: Mapping[str, Any], pairs: Sequence[tuple[int, int]]
) -> list[float] | None:
    """Factor and offset that lead from the old places to the new ones; None when none do."""
    was = _places(old, [one for one, _ in pairs])
    now = _places(new, [other for _, other in pairs])
    if not (np.isnan(was) == np.isnan(now)).all():
        return None
    known = ~np.isnan(was)
    if not known.any():
        return [1.0, 0.0]
    first, last = int(np.nanargmin(was)), int(np.nanargmax(was))
    wide = was[last] - was[first]
    factor = float((now[last] - now[first]) / wide) if wide > 0 else 1.0
    offset = float(now[first] - factor * was[first])
    if np.abs(was[known] * factor + offset - now[known]).max() > _NEAR:
        return None
    return [round(factor, 8), round(offset, 8)]


def _places(column: Mapping[str, Any], rows: Sequence[int]) -> np.ndarray[Any, np.dtype[Any]]:
    values = [column[name][at] for name in ("lo", "hi") for at in rows]
    return np.array(values, dtype=np.float64)
