"""Partition specs from text: `["day(order_date)", "bucket[16](customer_id)", "country"]`.

Accepted forms: a bare column name (identity), `transform(column)` with Iceberg's names or Spark's
plurals (`years`, `months`, `days`, `hours`), and a width either as `bucket[16](id)` or as
`bucket(16, id)`, that of truncate also as `truncate(name, 4)`. A bucket may be made from several
columns: `bucket[16](a, b)`. Columns may be nested (`address.zip`) and quoted.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Final

from frazil.errors import InvalidInput
from frazil.filter.bind.filter_columns import ColumnIndex
from frazil.iceberg.expressions import Column
from frazil.iceberg.partitioning import (
    FIRST_FIELD_ID,
    MAX_SOURCES,
    PartitionField,
    PartitionSpec,
    partition_field,
)
from frazil.iceberg.schema import Schema
from frazil.iceberg.transforms import (
    BucketTransform,
    DayTransform,
    HourTransform,
    IdentityTransform,
    JointBucketTransform,
    MonthTransform,
    Transform,
    TruncateTransform,
    VoidTransform,
    YearTransform,
    parse_transform,
)
from frazil.iceberg.types import PrimitiveType, VariantType

if TYPE_CHECKING:
    from frazil.iceberg.sorting import SortOrder

# Possessive quantifiers: a long run of spaces is scanned once.
_CALL: Final = re.compile(r"(?P<name>\w++)\s*+(?:\[(?P<width>[^\]]*+)\]\s*+)?\((?P<args>.*)\)")
_UNSIZED: Final = {
    name: parse_transform(name) for name in ("identity", "void", "year", "month", "day", "hour")
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
        part = parse_part(text, columns, field_id=FIRST_FIELD_ID + position)
        _refuse_clash(text, part, fields, columns)
        fields.append(part)
    return PartitionSpec(*fields, spec_id=0)


def parse_part(
    text: str, columns: ColumnIndex, *, field_id: int, name: str | None = None
) -> PartitionField:
    """The partition field of one term, by default with the name that Iceberg gives it."""
    sources, transform = _parse(text, columns, "partition_by")
    return partition_field(
        [source.field.field_id for source in sources],
        field_id=field_id,
        transform=transform,
        name=field_name(sources, transform) if name is None else name,
    )


def parse_term(text: str, columns: ColumnIndex) -> tuple[Column, Transform]:
    """The column and transform of one term of a sort order."""
    sources, transform = _parse(text, columns, "sort_by")
    if len(sources) > 1:
        raise _bad(text, "only partitions are made from several columns", "sort_by")
    return sources[0], transform


def _parse(text: str, columns: ColumnIndex, what: str) -> tuple[tuple[Column, ...], Transform]:
    """The columns and transform of one term; refuses unknown ones and types that do not fit.

    `what` names the list that the term belongs to in complaints.
    """

    def bad(problem: str) -> InvalidInput:
        return _bad(str(text), problem, what)

    if not isinstance(text, str) or not text.strip():
        raise bad("it is empty")
    match = _CALL.fullmatch(text.strip())
    transform: Transform = IdentityTransform()
    argument_texts = [text.strip()]
    if match is not None:
        arguments = [part.strip() for part in match["args"].split(",")]
        width = None if match["width"] is None else match["width"].strip()
        transform, argument_texts = _transform(bad, match["name"].lower(), width, arguments)
    elif any(character in text for character in "()[],"):
        raise bad("it is neither a column nor transform(column)")
    try:
        sources = tuple(columns.named(_unquoted(name)) for name in argument_texts)
    except InvalidInput as problem:
        raise bad(str(problem)) from None
    for at, column in enumerate(sources):
        type_ = column.field.field_type
        fits = isinstance(type_, PrimitiveType) and not isinstance(type_, VariantType)
        if not fits or not transform.can_transform(type_):
            raise bad(
                f"{transform} cannot be applied to column '{column.name}', a {type_}; "
                f"it takes {_takes(transform)}"
            )
        if column in sources[:at]:
            raise bad(f"it names column '{column.name}' twice")
    return sources, transform


def field_name(sources: Sequence[Column], transform: Transform) -> str:
    """The name of the partition field, as Iceberg names it: `ts_day`, `id_bucket_16`."""
    name = "_".join(column.name for column in sources)
    if isinstance(transform, IdentityTransform):
        return name
    if isinstance(transform, BucketTransform | JointBucketTransform):
        return f"{name}_bucket_{transform.num_buckets}"
    if isinstance(transform, TruncateTransform):
        return f"{name}_trunc_{transform.width}"
    return f"{name}_{'null' if isinstance(transform, VoidTransform) else transform}"


def _refuse_clash(
    text: str, part: PartitionField, fields: Sequence[PartitionField], columns: ColumnIndex
) -> None:
    for other in fields:
        if repeats(part, other):
            raise _bad(text, f"it repeats '{other.name}'")
        if other.name == part.name:
            raise _bad(text, f"two partition fields would be called '{part.name}'")
    column = columns.by_name.get(part.name)
    if column is not None and not isinstance(part.transform, IdentityTransform):
        raise _bad(text, f"its field would be called '{part.name}', which is a column")


def repeats(part: PartitionField, other: PartitionField) -> bool:
    """Whether two partition fields divide rows alike, or one more finely than the other."""
    return part.source_ids == other.source_ids and (
        part.transform.dedup_name == other.transform.dedup_name
    )


def _transform(
    bad: Callable[[str], InvalidInput], name: str, width: str | None, arguments: list[str]
) -> tuple[Transform, list[str]]:
    """The transform, and the columns among its arguments."""
    if name in _SIZED:
        if width is None and len(arguments) > 1:
            # Iceberg's Spark takes the width of truncate behind the column, too.
            behind = name == "truncate" and len(arguments) == 2 and arguments[1].isdecimal()
            width = arguments.pop(1 if behind and not arguments[0].isdecimal() else 0)
        if width is None:
            raise bad(f"it has no width; write it as {name}[16](column)")
        if not width.isdecimal() or not 1 <= int(width[:12]) <= _MAX_WIDTH:
            raise bad(f"'{width}' is not a width; write a whole number of at least 1")
        if name == "bucket" and 1 < len(arguments) <= MAX_SOURCES:
            return JointBucketTransform(int(width)), arguments
        if len(arguments) != 1:
            raise bad(f"write it as {name}[16](column) or {name}(16, column)")
        sized = BucketTransform if name == "bucket" else TruncateTransform
        return sized(int(width)), arguments
    transform = _UNSIZED.get(name.removesuffix("s")) if name != "s" else None
    if transform is None or (name.endswith("s") and name.removesuffix("s") in ("identity", "void")):
        transforms = ", ".join((*_UNSIZED, *(f"{sized}[N]" for sized in _SIZED)))
        raise bad(f"'{name}' is not a transform. Known transforms: {transforms}")
    if width is not None:
        raise bad(f"{name} takes no width")
    if len(arguments) != 1:
        raise bad(f"{name} takes one column")
    return transform, arguments


def _unquoted(name: str) -> str:
    return re.sub(r'"([^"]*)"|`([^`]*)`', lambda match: match[1] or match[2] or "", name)


def _takes(transform: Transform) -> str:
    if isinstance(transform, HourTransform):
        return "timestamps"
    if isinstance(transform, YearTransform | MonthTransform | DayTransform):
        return "dates and timestamps"
    if isinstance(transform, TruncateTransform):
        return "int, long, decimal, string and binary"
    if isinstance(transform, BucketTransform | JointBucketTransform):
        return "numbers without fractions, decimals, dates, times, text, uuids and binary"
    return "primitive types"


def _bad(text: str, problem: str, what: str = "partition_by") -> InvalidInput:
    return InvalidInput(f"{what} '{text}': {problem}")


def parse_sort_order(terms: Sequence[str], schema: Schema) -> SortOrder:
    """The sort order that the terms describe; no terms make the table unsorted."""
    from frazil.iceberg.sorting import UNSORTED, NullOrder, SortDirection, SortField, SortOrder

    if isinstance(terms, str):
        terms = [terms]
    columns = ColumnIndex.of(schema)
    fields: list[SortField] = []
    keys: set[tuple[int, str]] = set()
    for text in terms:
        if not isinstance(text, str):
            raise InvalidInput(f"sort_by {text!r}: a term is text, such as 'price desc'")
        term, nulls = _without_nulls(text)
        term, direction = _without_direction(term)
        column, transform = parse_term(term, columns)
        key = (column.field.field_id, str(transform))
        if key in keys:
            raise InvalidInput(f"sort_by '{text}': '{column.name}' is sorted by twice")
        keys.add(key)
        descending = direction == "desc"
        nulls = nulls or ("last" if descending else "first")
        fields.append(
            SortField(
                source_id=column.field.field_id,
                transform=transform,
                direction=SortDirection.DESC if descending else SortDirection.ASC,
                null_order=NullOrder.NULLS_FIRST if nulls == "first" else NullOrder.NULLS_LAST,
            )
        )
    return SortOrder(*fields, order_id=UNSORTED.order_id + 1) if fields else UNSORTED


def _without_nulls(text: str) -> tuple[str, str | None]:
    """A term without `nulls first` or `nulls last` at its end, and which of them it was."""
    words = text.rsplit(maxsplit=2)
    if len(words) == 3 and words[1].lower() == "nulls" and words[2].lower() in ("first", "last"):
        return words[0], words[2].lower()
    return text, None


def _without_direction(text: str) -> tuple[str, str | None]:
    """A term without `asc` or `desc` at its end, and which of them it was."""
    words = text.rsplit(maxsplit=1)
    if len(words) == 2 and words[1].lower() in ("asc", "desc"):
        return words[0], words[1].lower()
    return text, None
