"""`frazil.system.bbox(shape, xmin, ymin, xmax, ymax)` in Spark, as a window that prunes by boxes.

The function is Frazil's own, so it finds the rows that `bbox` finds elsewhere.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from frazil.filter.bind.box_predicate import BoxPredicate, Window
from frazil.filter.bind.filter_columns import ColumnIndex
from frazil.format.values.types import is_geo

Node = Mapping[str, Any]
_NUMBERS: Final = ("TINYINT", "SMALLINT", "INT", "BIGINT", "FLOAT", "DOUBLE", "DECIMAL")


def windows(filters: Sequence[Node], index: ColumnIndex) -> list[BoxPredicate]:
    """The windows of filters that all have to hold."""
    found: list[BoxPredicate] = []
    rest = list(filters)
    while rest:
        node = rest.pop()
        children = node.get("children", [])
        if node.get("op") in ("AND", "BOOLEAN_EXPRESSION"):
            rest += children
        elif node.get("op") == "bbox" and len(children) == 5:
            window = _window(children, index)
            found += [] if window is None else [window]
    return found


def _window(children: Sequence[Node], index: ColumnIndex) -> BoxPredicate | None:
    path = tuple(children[0].get("column", ()))
    column = next((one for one in index.by_id.values() if one.path == path), None)
    if column is None or not is_geo(column.field.field_type):
        return None
    ends = [_number(node) for node in children[1:]]
    if any(end is None or end != end for end in ends):
        return None
    west, south, east, north = (float(end) for end in ends if end is not None)
    window = Window(west=west, south=min(south, north), east=east, north=max(south, north))
    return BoxPredicate(column, window)


def _number(node: Node) -> float | None:
    value = node.get("value")
    if value is None or not str(node.get("type", "")).startswith(_NUMBERS):
        return None
    return float(value)


__all__ = ["windows"]
