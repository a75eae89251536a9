"""`variant_get(v, '$.price', 'int')` in Spark, as a field inside variants that has bounds.

Spark 4.3 hands such calls to a source, older ones do not. Spark cuts what a cast to an integer
rounds in DuckDB; both lie within the bounds.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

from frazil.filter.bind.filter_columns import ColumnIndex
from frazil.filter.prune.variant_terms import VariantPath
from frazil.iceberg import types as ice
from frazil.iceberg.types import VariantType

CALL: Final = "variant_get"
_STEP: Final = re.compile(r"""\.([^.\[]+)|\['([^']*)'\]|\["([^"]*)"\]""")
_TYPES: Final[dict[str, ice.PrimitiveType]] = {
    **dict.fromkeys(("TINYINT", "SMALLINT", "INT", "BIGINT"), ice.LongType()),
    "DOUBLE": ice.DoubleType(),
    "STRING": ice.StringType(),
    "DATE": ice.DateType(),
    "TIMESTAMP_NTZ": ice.TimestampType(),
}


def variant_field(node: Mapping[str, Any], index: ColumnIndex) -> VariantPath | None:
    """The field that a call reads; None for other parts of a condition, and inside arrays."""
    if node.get("op") != CALL or len(node["children"]) != 1:
        return None
    path = tuple(node["children"][0].get("column", ()))
    column = next((one for one in index.by_id.values() if one.path == path), None)
    kind = _TYPES.get(str(node["type"]))
    names = _names(str(node["path"]))
    if column is None or kind is None or names is None:
        return None
    if not isinstance(column.field.field_type, VariantType):
        return None
    return VariantPath(column, names, kind, is_cast=True)


def _names(path: str) -> list[str] | None:
    if not path.startswith("$"):
        return None
    names, at = [], 1
    while at < len(path):
        step = _STEP.match(path, at)
        if step is None:
            return None
        names.append(next(name for name in step.groups() if name is not None))
        at = step.end()
    return names


__all__ = ["CALL", "variant_field"]
