"""Incoming Arrow data made to fit a table schema, by column name and without loss.

`Conformer` decides once per input what every column becomes and reports every misfit together;
applied to a batch it checks what only values can tell: nulls in required columns and values that
a cast would change. Where the data comes from is the business of `rows`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator

import pyarrow as pa

from frazil import arrow_compute as pc
from frazil.data import reshape
from frazil.data.reshape import Cast, Fill, Keep, Made, Plan
from frazil.data.schema import (
    arrow_schema,
    is_bytes,
    is_list,
    is_text,
    nested_arrow_type,
    plain_type,
)
from frazil.errors import InvalidInput
from frazil.format.values.types import scalar
from frazil.iceberg import types as ice
from frazil.iceberg.schema import Schema
from frazil.iceberg.types import VariantType
from frazil.value_classes import dataclass

MAX_BATCH_ROWS = 1 << 17
MAX_BATCH_BYTES = 1 << 28


@dataclass(frozen=True, slots=True, kw_only=True)
class Misfit:
    """Why one column does not fit."""

    column: str
    actual: str
    expected: str
    is_extra: bool = False

    def __str__(self) -> str:
        return f"column '{self.column}': found {self.actual}; expected {self.expected}"


def refuse(what: str, problems: Iterable[Misfit]) -> InvalidInput:
    """One error that lists every problem."""
    problems = list(problems)
    listed = "".join(f"\n  - {problem}" for problem in problems)
    if any(problem.is_extra for problem in problems):
        listed += '\nAppend with schema="merge" (in the terminal --merge-schema) to add new columns'
    return InvalidInput(f"{what}:{listed}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Conformer:
    """How data of one Arrow schema becomes rows of a table schema."""

    schema: Schema
    arrow: pa.Schema
    plans: tuple[tuple[int | None, Plan], ...]

    @staticmethod
    def between(incoming: pa.Schema, schema: Schema) -> Conformer:
        """Match columns by name; refuses, all at once, whatever does not fit."""
        problems: list[Misfit] = []
        plans = _match(list(incoming), schema.fields, "", problems)
        if problems:
            raise refuse("The data does not fit the table", problems)
        return Conformer(schema=schema, arrow=arrow_schema(schema), plans=plans)

    def conform(self, batch: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
        """The batch in the table's types, in pieces of bounded size."""
        for piece in _pieces(batch):
            yield self._conform(piece)

    def _conform(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        problems: list[Misfit] = []
        columns: list[pa.Array] = []
        for (index, plan), field in zip(self.plans, self.schema.fields, strict=True):
            source = None if index is None else batch.column(index)
            try:
                column = _reshaped(plan, source, batch.num_rows)
            except (pa.ArrowInvalid, pa.ArrowNotImplementedError, OverflowError) as error:
                kind = "a constant" if source is None else str(source.type)
                reason = f"{kind} with a value that does not fit ({error})"
                expected = str(field.field_type)
                problems.append(Misfit(column=field.name, actual=reason, expected=expected))
                continue
            problems.extend(_nulls_in_required(column, field, field.name))
            columns.append(column)
        if problems:
            raise refuse("The data does not fit the table", problems)
        return reshape.record_batch(columns, self.arrow, batch.num_rows)


def _reshaped(plan: Plan, source: pa.Array | None, rows: int) -> pa.Array:
    """A column in the table's type. A piece of a column of more than 2 GiB keeps offsets that are
    too large for it until it is copied."""
    try:
        return reshape.reshape(plan, source, rows)
    except pa.ArrowInvalid:
        if source is None:
            raise
        return reshape.reshape(plan, source.take(pa.array(range(rows))), rows)


def batch_bytes(batch: pa.RecordBatch) -> int:
    """How much memory the rows of a batch take."""
    try:
        return int(batch.nbytes)
    except pa.ArrowTypeError:  # pyarrow 22 cannot say it of views
        return int(batch.get_total_buffer_size())


def _pieces(batch: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
    rows = batch.num_rows
    if rows == 0:
        return
    by_bytes = MAX_BATCH_BYTES * rows // max(batch_bytes(batch), 1)
    step = max(1, min(MAX_BATCH_ROWS, by_bytes))
    if rows <= step:
        yield batch
        return
    for start in range(0, rows, step):
        yield batch.slice(start, step)


def _match(
    incoming: list[pa.Field],
    fields: Iterable[ice.NestedField],
    prefix: str,
    problems: list[Misfit],
) -> tuple[tuple[int | None, Plan], ...]:
    fields = tuple(fields)
    names = [field.name for field in incoming]
    column_names = {field.name for field in fields}
    counts = Counter(names)
    first = {name: index for index, name in reversed(list(enumerate(names)))}
    for name, count in counts.items():
        if count > 1:
            reason = f"{count} columns of this name"
            problems.append(Misfit(column=f"{prefix}{name}", actual=reason, expected="one"))
        if name not in column_names:
            reason = f"an extra column ({incoming[first[name]].type})"
            expected = "only columns of the table: " + ", ".join(field.name for field in fields)
            column = f"{prefix}{name}"
            problems.append(Misfit(column=column, actual=reason, expected=expected, is_extra=True))
    plans: list[tuple[int | None, Plan]] = []
    for field in fields:
        path = f"{prefix}{field.name}"
        if field.name in first:
            index = first[field.name]
            plans.append((index, _plan(incoming[index].type, field, path, problems)))
        else:
            plans.append((None, _absent(field, path, problems)))
    return tuple(plans)


def _absent(field: ice.NestedField, path: str, problems: list[Misfit]) -> Plan:
    if field.write_default is not None:
        return Fill(scalar(field.write_default, field.field_type))
    if field.required:
        expected = f"a value in every row ({field.field_type})"
        problems.append(Misfit(column=path, actual="no such column", expected=expected))
    return Fill(pa.nulls(1, nested_arrow_type(field.field_type))[0])


def _plan(incoming: pa.DataType, field: ice.NestedField, path: str, problems: list[Misfit]) -> Plan:
    type_ = field.field_type
    target = nested_arrow_type(type_)
    source = plain_type(incoming)
    if pa.types.is_null(source):
        return Fill(pa.scalar(None, target))
    match type_:
        case ice.StructType() if pa.types.is_struct(source):
            children = _match(list(source), type_.fields, f"{path}.", problems)
            return reshape.simplified(reshape.Struct(target, children), incoming)
        case ice.ListType() if is_list(source):
            element = _plan(source.value_type, type_.element_field, f"{path}.element", problems)
            return reshape.simplified(reshape.List(target, element), incoming)
        case ice.MapType() if (pair := _pair(source)) is not None:
            key = _plan(pair[0], type_.key_field, f"{path}.key", problems)
            value = _plan(pair[1], type_.value_field, f"{path}.value", problems)
            return reshape.simplified(reshape.Map(target, key, value), incoming)
    if incoming == target:
        return Keep(target)
    if isinstance(type_, VariantType):
        from frazil.data.variants import variants_of

        return Made(target, variants_of)
    if not fits(source, type_) and not _may_fit(source, type_):
        expected = f"{type_} (Arrow {target})"
        problems.append(Misfit(column=path, actual=str(incoming), expected=expected))
    return Cast(target)


def _pair(arrow: pa.DataType) -> tuple[pa.DataType, pa.DataType] | None:
    if pa.types.is_map(arrow):
        return arrow.key_type, arrow.item_type
    if is_list(arrow) and pa.types.is_struct(arrow.value_type):
        pair = arrow.value_type  # how Polars hands over maps
        if [child.name for child in pair] == ["key", "value"]:
            return pair.field(0).type, pair.field(1).type
    return None


def fits(source: pa.DataType, target: ice.IcebergType) -> bool:
    """Whether values of an Arrow type can become values of a table type without loss.

    True also where single values may still not fit (finer time units); the cast then refuses.
    """
    types = pa.types
    match target:
        case ice.BooleanType():
            return bool(types.is_boolean(source))
        case ice.IntegerType():
            return bool(types.is_integer(source) and _integer_bits(source) <= 32)
        case ice.LongType():
            return bool(types.is_integer(source) and _integer_bits(source) <= 64)
        case ice.FloatType():
            return bool(types.is_floating(source) and source.bit_width <= 32)
        case ice.DoubleType():
            return bool(types.is_floating(source))
        case ice.DecimalType():
            return bool(
                types.is_decimal(source)
                and 0 <= source.scale <= target.scale
                and source.precision - source.scale <= target.precision - target.scale
            )
        case ice.DateType():
            return bool(types.is_date(source))
        case ice.TimeType():
            return bool(types.is_time(source))
        case ice.TimestampType() | ice.TimestampNanoType():
            return bool(types.is_timestamp(source) and source.tz is None)
        case ice.TimestamptzType() | ice.TimestamptzNanoType():
            return bool(types.is_timestamp(source) and source.tz is not None)
        case ice.StringType():
            return is_text(source)
        case ice.UUIDType():
            return isinstance(source, pa.UuidType) or source == pa.binary(16)
        case ice.FixedType():
            return source == pa.binary(len(target)) or is_bytes(source)
        case ice.BinaryType() | ice.GeometryType() | ice.GeographyType():
            return is_bytes(source) or bool(types.is_fixed_size_binary(source))
        case ice.UnknownType():
            return bool(types.is_null(source))
    return False


def _may_fit(source: pa.DataType, target: ice.IcebergType) -> bool:
    """Whether values of rows decide: integers for floating-point columns, and decimals with more
    digits, are taken as far as the cast loses nothing. Files are not read that way."""
    match target:
        case ice.FloatType() | ice.DoubleType():
            return bool(pa.types.is_integer(source))
        case ice.DecimalType():
            return bool(pa.types.is_decimal(source))
    return False


def _integer_bits(source: pa.DataType) -> int:
    return int(source.bit_width) + (1 if pa.types.is_unsigned_integer(source) else 0)


def _nulls_in_required(array: pa.Array, field: ice.NestedField, path: str) -> Iterator[Misfit]:
    if field.required and array.null_count:
        yield Misfit(
            column=path,
            actual=f"{array.null_count} null{'s' if array.null_count > 1 else ''}",
            expected=f"a value in every row ({field.field_type}, required)",
        )
    match field.field_type:
        case ice.StructType(fields=children):
            live = pc.filter(array, pc.is_valid(array)) if array.null_count else array
            for index, child in enumerate(children):
                yield from _nulls_in_required(live.field(index), child, f"{path}.{child.name}")
        case ice.ListType() as kind if _needs_check(kind.element_field):
            yield from _nulls_in_required(
                reshape.list_parts(array)[1], kind.element_field, f"{path}.element"
            )
        case ice.MapType() as kind:
            _, pairs = reshape.list_parts(array)
            yield from _nulls_in_required(pairs.field(0), kind.key_field, f"{path}.key")
            yield from _nulls_in_required(pairs.field(1), kind.value_field, f"{path}.value")


def _needs_check(field: ice.NestedField) -> bool:
    return field.required or not field.field_type.is_primitive
