"""Functions of shapes that a connection is given when a text calls one of them.

Columns of geometry and geography are bytes in DuckDB (WKB). Its own functions take them as
`geom::GEOMETRY`; those named here take both. `ST_Intersects`, `ST_Within` and `ST_Contains` are not
among DuckDB's own: shapely evaluates them, on the plane of the coordinates.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pyarrow as pa

from frazil.extras import needed

if TYPE_CHECKING:
    import duckdb

_CALLED: Final = re.compile(
    r"\b(bbox|st_(?:intersects_extent|intersects|within|contains|makeenvelope|point|geomfromtext))"
    r'"?\s*\(',
    re.IGNORECASE,
)
_EXACT: Final = ("st_intersects", "st_within", "st_contains")
_FAR: Final = "1e300"
_ENVELOPE: Final = (
    "CAST(format('POLYGON(({0} {1},{2} {1},{2} {3},{0} {3},{0} {1}))', CAST(x1 AS DOUBLE),"
    " CAST(y1 AS DOUBLE), CAST(x2 AS DOUBLE), CAST(y2 AS DOUBLE)) AS GEOMETRY)"
)
_MACROS: Final = {
    "st_geomfromtext(text)": "CAST(text AS GEOMETRY)",
    "st_point(x, y)": (
        "CAST(format('POINT({} {})', CAST(x AS DOUBLE), CAST(y AS DOUBLE)) AS GEOMETRY)"
    ),
    "st_makeenvelope(x1, y1, x2, y2)": _ENVELOPE,
    "st_intersects_extent(a, b)": (
        "system.main.st_intersects_extent(CAST(a AS GEOMETRY), CAST(b AS GEOMETRY))"
    ),
    **{
        f"{name}(a, b)": (
            f"__frazil_{name}(ST_AsWKB(CAST(a AS GEOMETRY)), ST_AsWKB(CAST(b AS GEOMETRY)))"
        )
        for name in _EXACT
    },
    # A window whose west is greater than its east goes on at the other end.
    "bbox(shape, x1, y1, x2, y2)": (
        "CASE WHEN x1 <= x2 THEN st_intersects_extent(shape, st_makeenvelope(x1, y1, x2, y2))"
        f" ELSE st_intersects_extent(shape, st_makeenvelope(x1, y1, {_FAR}, y2)) OR"
        f" st_intersects_extent(shape, st_makeenvelope(-{_FAR}, y1, x2, y2)) END"
    ),
}
_lock = threading.Lock()


def provide(connection: duckdb.DuckDBPyConnection, text: str) -> None:
    """Make a connection's database know the functions of shapes that a text calls; Unsupported if
    one of them needs a package that is not installed."""
    called = {match.group(1).lower() for match in _CALLED.finditer(text)}
    if not called:
        return
    for name in _EXACT:
        if name in called:
            needed("shapely", name.upper())
    import duckdb

    with _lock:
        try:
            connection.execute("SELECT __frazil_st_within(NULL, NULL)").fetchall()
        except duckdb.CatalogException:
            _define(connection)


def _define(connection: duckdb.DuckDBPyConnection) -> None:
    for name in _EXACT:
        connection.create_function(
            f"__frazil_{name}",
            _FUNCTIONS[name],
            ["BLOB", "BLOB"],
            "BOOLEAN",
            type="arrow",
            null_handling="special",
        )
    for head, body in _MACROS.items():
        connection.execute(f"CREATE OR REPLACE MACRO {head} AS {body}")


def _evaluated(name: str) -> Callable[[pa.Array, pa.Array], pa.Array]:
    def evaluate(left: Any, right: Any) -> pa.Array:
        if left.null_count == len(left) or right.null_count == len(right):
            return pa.nulls(len(left), pa.bool_())
        shapely = needed("shapely", name.upper())
        shapes = [shapely.from_wkb(np.array(side.to_pylist(), object)) for side in (left, right)]
        related = getattr(shapely, name.removeprefix("st_"))(*shapes)
        missing = shapely.is_missing(shapes[0]) | shapely.is_missing(shapes[1])
        return pa.array(related, pa.bool_(), mask=missing)

    return evaluate


# DuckDB does not keep them alive for longer than the cursor that made them known.
_FUNCTIONS: Final = {name: _evaluated(name) for name in _EXACT}
