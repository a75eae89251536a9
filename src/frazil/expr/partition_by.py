"""Partition specs from text: `["day(order_date)", "bucket[16](customer_id)", "country"]`.

Accepted forms: a bare column name (identity), `transform(column)` with Iceberg's names or Spark's
plurals (`years`, `months`, `days`, `hours`), and a width either as `bucket[16](id)` or as
`bucket(16, id)`. Columns may be nested (`address.zip`) and quoted.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any, Final

from pyiceberg.partitioning import PARTITION_FIELD_ID_START, PartitionField, PartitionSpec
from pyiceberg.schema import Schema
from pyiceberg.transforms import (
    BucketTransform,
    DayTransform,
    HourTransform,
    IdentityTransform,
    MonthTransform,
    Transform,
    TruncateTransform,
    VoidTransform,
    YearTransform,
)
from pyiceberg.types import PrimitiveType

from frazil.errors import InvalidInput
from frazil.expr.filter_columns import Column, ColumnIndex

_CALL: Final = re.compile(r"(?P<name>\w+)\s*(?:\[\s*(?P<width>[^\]]*?)\s*\])?\s*\((?P<args>.*)\)")
_PLAIN: Final[dict[str, Transform[Any, Any]]] = {
    "identity": IdentityTransform(),
    "void": VoidTransform(),
    "year": YearTransform(),
    "month": MonthTransform(),
    "day": DayTransform(),
    "hour": HourTransform(),
}
_SIZED: Final = ("bucket", "truncate")
_MAX_WIDTH: Final = 2**31 - 1


def parse_partition_by(terms: Sequence[str], schema: Schema) -> PartitionSpec:
    """The partition spec that the terms describe, with field ids from 1000 on."""
    if isinstance(terms, str):
        terms = [terms]
    columns = ColumnIndex.of(schema)
    fields: list[PartitionField] = []
    for position, text in enumerate(terms):
        column, transform = parse_term(text, columns)
        name = field_name(column, transform)
        _refuse_clash(text, name, column, transform, fields, columns)
        fields.append(
            PartitionField(
                source_id=column.field.field_id,
                field_id=PARTITION_FIELD_ID_START + position,
                transform=transform,
                name=name,
            )
        )
    return PartitionSpec(*fields, spec_id=0)


def parse_term(
    text: str, columns: ColumnIndex, *, what: str = "partition_by"
) -> tuple[Column, Transform[Any, Any]]:
    """The column and transform of one term; refuses unknown ones and types that do not fit.

    `what` names the list that the term belongs to in complaints.
    """

    def bad(problem: str) -> InvalidInput:
        return _bad(str(text), problem, what)

    if not isinstance(text, str) or not text.strip():
        raise bad("it is empty")
    match = _CALL.fullmatch(text.strip())
    transform: Transform[Any, Any] = IdentityTransform()
    named = text.strip()
    if match is not None:
        arguments = [part.strip() for part in match["args"].split(",")]
        transform = _transform(bad, match["name"].lower(), match["width"], arguments)
        named = arguments[-1]
    elif any(character in named for character in "()[],"):
        raise bad("it is neither a column nor transform(column)")
    try:
        column = columns.named(_unquoted(named))
    except InvalidInput as problem:
        raise bad(str(problem)) from None
    type_ = column.field.field_type
    if not isinstance(type_, PrimitiveType) or not transform.can_transform(type_):
        raise bad(
            f"{transform} cannot be applied to column '{column.name}', a {type_}; "
            f"it takes {_takes(transform)}"
        )
    return column, transform


def field_name(column: Column, transform: Transform[Any, Any]) -> str:
    """The name of the partition field, as Iceberg names it: `ts_day`, `id_bucket_16`."""
    name = column.name
    if isinstance(transform, IdentityTransform):
        return name
    if isinstance(transform, BucketTransform):
        return f"{name}_bucket_{transform.num_buckets}"
    if isinstance(transform, TruncateTransform):
        return f"{name}_trunc_{transform.width}"
    return f"{name}_{'null' if isinstance(transform, VoidTransform) else transform}"


def _refuse_clash(
    text: str,
    name: str,
    column: Column,
    transform: Transform[Any, Any],
    fields: Sequence[PartitionField],
    columns: ColumnIndex,
) -> None:
    for other in fields:
        if other.source_id == column.field.field_id and (
            other.transform.dedup_name == transform.dedup_name
        ):
            raise _bad(text, f"it repeats '{other.name}'")
        if other.name == name:
            raise _bad(text, f"two partition fields would be called '{name}'")
    taken = columns.by_name.get(name)
    if taken is not None and not isinstance(transform, IdentityTransform):
        raise _bad(text, f"its field would be called '{name}', which is a column")


def _transform(
    bad: Callable[[str], InvalidInput], name: str, width: str | None, arguments: Sequence[str]
) -> Transform[Any, Any]:
    if name in _SIZED:
        if width is None and len(arguments) == 2:
            width = arguments[0]
        elif len(arguments) != 1:
            raise bad(f"write it as {name}[16](column) or {name}(16, column)")
        if width is None:
            raise bad(f"it has no width; write it as {name}[16](column)")
        if not width.isdecimal() or not 1 <= int(width[:12]) <= _MAX_WIDTH:
            raise bad(f"'{width}' is not a width; write a whole number of at least 1")
        return BucketTransform(int(width)) if name == "bucket" else TruncateTransform(int(width))
    found = _PLAIN.get(name.removesuffix("s")) if name != "s" else None
    if found is None or (name.endswith("s") and name.removesuffix("s") in ("identity", "void")):
        known = ", ".join((*_PLAIN, *(f"{sized}[N]" for sized in _SIZED)))
        raise bad(f"'{name}' is not a transform. Known transforms: {known}")
    if width is not None:
        raise bad(f"{name} takes no width")
    if len(arguments) != 1:
        raise bad(f"{name} takes one column")
    return found


def _unquoted(name: str) -> str:
    return re.sub(r'"([^"]*)"|`([^`]*)`', lambda match: match[1] or match[2] or "", name)


def _takes(transform: Transform[Any, Any]) -> str:
    if isinstance(transform, HourTransform):
        return "timestamps"
    if isinstance(transform, YearTransform | MonthTransform | DayTransform):
        return "dates and timestamps"
    if isinstance(transform, TruncateTransform):
        return "int, long, decimal, string and binary"
    if isinstance(transform, BucketTransform):
        return "numbers without fractions, decimals, dates, times, text, uuids and binary"
    return "primitive types"


def _bad(text: str, problem: str, what: str = "partition_by") -> InvalidInput:
    return InvalidInput(f"{what} '{text}': {problem}")
