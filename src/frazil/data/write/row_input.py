"""What users hand over as rows, turned into Arrow batches of a table schema.

Arrow tables, batches, readers, datasets; anything that speaks the Arrow stream interface (Polars,
DuckDB, PyArrow); pandas; Python dicts and lists. Arrow data stays a stream: nothing is
collected. Fitting types is the business of `conform`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import pyarrow as pa

from frazil import arrow_values
from frazil.argument_checks import short_repr
from frazil.data.conform import Conformer, Misfit, refuse
from frazil.data.schema import arrow_schema, iceberg_schema, nested_arrow_type
from frazil.errors import InvalidInput, Unsupported
from frazil.format.values.types import BOOL8, plain_value
from frazil.iceberg.schema import Schema
from frazil.iceberg.types import (
    DateType,
    IcebergType,
    ListType,
    MapType,
    NestedField,
    StringType,
    StructType,
    VariantType,
)

if TYPE_CHECKING:
    import pyarrow as pa


Rows: TypeAlias = Any
"""Arrow table, batch or reader; pandas or Polars frame; dict of columns; list of dicts; …"""

NO_ARROW_FORM = (pa.ArrowException, TypeError, ValueError, OverflowError)
"""What pyarrow raises for Python values that it cannot take."""
_PYTHON_BATCH_ROWS = 10_000
_NONE = object()


def conformed(data: Rows, schema: Schema) -> Iterator[pa.RecordBatch]:
    """The rows as batches of the table's types; refuses data that does not fit.

    The check of names and types happens at once, before the first batch is asked for.
    """
    if not schema.fields:
        raise InvalidInput(
            "the table has no columns yet; add them with evolve_schema(), or append with "
            'schema="merge"'
        )
    source = with_plain_booleans(record_batches(data, schema))
    conformer = Conformer.between(source.schema, schema)
    return chain.from_iterable(conformer.conform(batch) for batch in source)


def with_plain_booleans(stream: pa.RecordBatchReader) -> pa.RecordBatchReader:
    """Booleans of a byte each, which DuckDB gives, as Arrow's own."""
    target = pa.schema([field.with_type(_plain(field.type)) for field in stream.schema])
    return stream if target == stream.schema else stream.cast(target)


def _plain(kind: pa.DataType) -> pa.DataType:
    if isinstance(kind, pa.BaseExtensionType):
        return pa.bool_() if kind.extension_name == BOOL8 else kind
    if pa.types.is_struct(kind):
        return pa.struct([field.with_type(_plain(field.type)) for field in kind])
    if pa.types.is_map(kind):
        key, item = kind.key_field, kind.item_field
        return pa.map_(key.with_type(_plain(key.type)), item.with_type(_plain(item.type)))
    if pa.types.is_list(kind):
        return pa.list_(kind.value_field.with_type(_plain(kind.value_type)))
    if pa.types.is_large_list(kind):
        return pa.large_list(kind.value_field.with_type(_plain(kind.value_type)))
    return kind


def schema_of(data: Rows) -> Schema:
    """A table schema for rows that come with one of their own, with fresh field ids."""
    if isinstance(data, Mapping | list | tuple):
        data = inferred(data)
    schema = record_batches(data, None).schema
    refuse_untyped(schema)
    return iceberg_schema(schema)


def refuse_untyped(schema: pa.Schema) -> None:
    """Refuse new columns without a value: nothing says what type later values will have."""
    untyped = [field.name for field in schema if _has_untyped(field.type)]
    if untyped:
        raise InvalidInput(
            f"column {', '.join(map(repr, untyped))} has no value to tell its type from; create "
            "it with a schema, or give it a type"
        )


def _has_untyped(kind: pa.DataType) -> bool:
    """Whether a type, or a part of it, is that of values that are all null."""
    if pa.types.is_null(kind):
        return True
    return any(_has_untyped(kind.field(at).type) for at in range(kind.num_fields))


def record_batches(data: Rows, schema: Schema | None) -> pa.RecordBatchReader:
    """The rows as a stream of Arrow batches, in the types they come in."""
    if isinstance(data, pa.RecordBatchReader):
        return data
    if isinstance(data, pa.Table):
        return data.to_reader()
    if isinstance(data, pa.RecordBatch):
        return pa.RecordBatchReader.from_batches(data.schema, [data])
    if _is_from(data, "pandas", "DataFrame"):
        return _pandas(data, schema).to_reader()
    if _is_from(data, "pyspark", "DataFrame"):
        return data.toArrow().to_reader()
    if _is_from(data, "polars", "LazyFrame"):
        return record_batches(data.collect(), schema)
    if hasattr(data, "__arrow_c_stream__"):
        return _stream(data)
    if _is_from(data, "pyarrow", "Dataset"):
        return data.scanner().to_reader()
    if _is_from(data, "pyarrow", "Scanner"):
        return data.to_reader()
    if isinstance(data, Mapping):
        return _columns(data, _needed(schema)).to_reader()
    if isinstance(data, Iterable) and not isinstance(data, str | bytes):
        return _iterable(data, schema)
    raise InvalidInput(
        f"rows are {short_repr(data)}; expected an Arrow table, batch or reader, a pandas or "
        "polars frame, a dict of columns or a list of dicts"
    )


def _stream(data: Any) -> pa.RecordBatchReader:
    """Rows of whatever gives Arrow data."""
    refuse_objects(data)
    try:
        return pa.RecordBatchReader.from_stream(data)
    except pa.ArrowInvalid as error:
        kind = type(data).__name__
        if kind in ("Series", "ChunkedArray"):
            raise InvalidInput(
                f"rows are a {kind}, which is one column; pass a frame or a dict of columns, such "
                'as {"id": values}'
            ) from error
        raise InvalidInput(f"rows are a {kind} without an Arrow form: {error}") from error


def refuse_objects(data: Any) -> None:
    """Refuse a polars frame with columns of Python objects: polars gives the addresses of these in
    memory as their values."""
    if not _is_from(data, "polars", "DataFrame"):
        return
    objects = [name for name, kind in data.schema.items() if str(kind) == "Object"]
    if objects:
        raise InvalidInput(
            f"column {', '.join(map(repr, objects))} of the polars frame has Python objects; "
            "cast it to a type"
        )


def row_reader(rows: Any, schema: Schema) -> pa.RecordBatchReader:
    """The rows with the columns that they have; Python rows get the table's types."""
    if isinstance(rows, Mapping):
        names = list(rows)
    elif isinstance(rows, list | tuple) and rows and isinstance(rows[0], Mapping):
        names = list(rows[0])
        for at, row in enumerate(rows):
            if set(row) != set(names):
                raise InvalidInput(
                    f"row {at} has the columns {', '.join(map(str, row))}; the first row has "
                    f"{', '.join(map(str, names))}. Give every row the same columns"
                )
    else:
        return record_batches(rows, schema)
    fields = {field.name: field for field in schema.fields}
    unknown = [str(name) for name in names if name not in fields]
    if unknown:
        return record_batches(inferred(rows), schema)
    return record_batches(rows, Schema(*(fields[name] for name in names)))


def _is_from(data: Any, package: str, name: str) -> bool:
    return any(
        kind.__module__.split(".")[0] == package and kind.__name__ == name
        for kind in type(data).__mro__
    )


def _needed(schema: Schema | None) -> Schema:
    if schema is None:
        raise Unsupported("Rows without types need a table schema.", feature="schema inference")
    return schema


def _pandas(frame: Any, schema: Schema | None) -> pa.Table:
    """A frame as pandas shows it: an index with a name is a column, too."""
    try:
        names = [name for name in frame.index.names if name is not None]
        for name in names:
            if name in frame.columns:
                raise InvalidInput(
                    f"the index and a column of the pandas frame are both named {name!r}; "
                    "rename one, or drop the index with reset_index(drop=True)"
                )
        if names:
            frame = frame.reset_index(level=names)
        return pa.Table.from_pandas(_without_periods(frame, schema), preserve_index=False)
    except NO_ARROW_FORM as error:
        raise InvalidInput(f"The pandas frame has no Arrow form: {error}") from error


def _without_periods(frame: Any, schema: Schema | None) -> Any:
    """A frame whose periods, which Arrow has no type for, are the moments they begin at, or text
    where the table has text."""
    kinds = {} if schema is None else {field.name: field.field_type for field in schema.fields}
    changed: dict[str, Any] = {}
    for name, dtype in zip(frame.columns, frame.dtypes, strict=True):
        if type(dtype).__name__ != "PeriodDtype":
            continue
        periods = frame[name].dt
        if isinstance(kinds.get(name), StringType):
            changed[name] = frame[name].astype("string")
        elif isinstance(kinds.get(name), DateType):
            changed[name] = periods.to_timestamp().dt.date
        else:
            changed[name] = periods.to_timestamp()
    return frame.assign(**changed) if changed else frame


def _iterable(data: Iterable[Any], schema: Schema | None) -> pa.RecordBatchReader:
    rows = iter(data)
    first = next(rows, _NONE)
    if first is _NONE:
        empty = arrow_schema(schema) if schema is not None else pa.schema([])
        return pa.RecordBatchReader.from_batches(empty, [])
    if isinstance(first, pa.RecordBatch):
        return pa.RecordBatchReader.from_batches(first.schema, chain([first], rows))
    if isinstance(first, pa.Table):
        tables = chain([first], rows)
        batches = (batch for table in tables for batch in table.to_batches())
        return pa.RecordBatchReader.from_batches(first.schema, batches)
    if isinstance(first, Mapping):
        columns = _needed(schema)
        arrow = pa.schema(list(_nullable(nested_arrow_type(columns.as_struct()))))
        return pa.RecordBatchReader.from_batches(
            arrow, _dicts(chain([first], rows), columns, arrow)
        )
    raise InvalidInput(f"a row is {short_repr(first)}; expected a dict of column names to values")


def inferred(data: Any) -> pa.Table:
    """A dict of columns or a list of dicts, in the types that Arrow finds for them."""
    if isinstance(data, Mapping):
        return _same_length({name: _untyped(name, values) for name, values in data.items()})
    try:
        for row in data:
            if not isinstance(row, Mapping):
                raise TypeError(f"a row is {short_repr(row)}; expected a dict")
        names = dict.fromkeys(name for row in data for name in row)
    except NO_ARROW_FORM as error:
        raise InvalidInput(f"The column types cannot be inferred from the rows: {error}") from error
    return _same_length({name: _untyped(name, [row.get(name) for row in data]) for name in names})


def _columns(data: Mapping[str, Any], schema: Schema) -> pa.Table:
    """A dict of columns. Arrow, numpy and pandas columns keep their types; Python ones take the
    table's."""
    problems: list[Misfit] = []
    arrays: dict[str, Any] = {}
    by_name = {field.name: field for field in schema.fields}
    for name, values in data.items():
        field = by_name.get(name)
        if field is None or not isinstance(values, Sequence) or isinstance(values, str | bytes):
            arrays[name] = _untyped(name, values)
        else:
            arrays[name] = _typed(list(values), field, name, problems)
    table = _same_length(arrays)
    if problems:
        raise refuse("The data does not fit the table", problems)
    return table


def _same_length(columns: Mapping[str, Any]) -> pa.Table:
    lengths = {name: len(values) for name, values in columns.items()}
    if len(set(lengths.values())) > 1:
        raise InvalidInput(f"columns differ in length: {lengths}")
    return pa.table(dict(columns))


def _untyped(name: str, values: Any) -> Any:
    """Values of a column in the type that Arrow finds for them."""
    if isinstance(values, pa.Array | pa.ChunkedArray):
        return values
    is_one_value = isinstance(values, str | bytes) or not isinstance(values, Iterable)
    if is_one_value:
        raise InvalidInput(
            f"column {name!r} is {short_repr(values)}; expected a list of values. A row goes into "
            "a list, too: append([row])"
        )
    try:
        return arrow_values.array(values)
    except NO_ARROW_FORM as error:
        raise InvalidInput(f"column '{name}': no Arrow form: {error}") from error


def _dicts(
    rows: Iterable[Mapping[str, Any]], schema: Schema, arrow: pa.Schema
) -> Iterator[pa.RecordBatch]:
    row = NestedField(field_id=0, name="row", field_type=schema.as_struct(), required=False)
    pending: list[Any] = []
    for values in rows:
        pending.append(values)
        if len(pending) == _PYTHON_BATCH_ROWS:
            yield _dict_batch(pending, row, arrow)
            pending = []
    if pending:
        yield _dict_batch(pending, row, arrow)


def _dict_batch(rows: list[Any], field: NestedField, arrow: pa.Schema) -> pa.RecordBatch:
    problems: list[Misfit] = []
    array = _typed(rows, field, "", problems)
    if problems:
        raise refuse("The data does not fit the table", problems)
    # Nulls in required columns are found when the batch is conformed, which names them.
    return pa.RecordBatch.from_arrays(
        [array.field(index) for index in range(len(arrow))], schema=arrow
    )


def _typed(values: list[Any], field: NestedField, path: str, problems: list[Misfit]) -> pa.Array:
    names: set[str] = set()

    def convert(value: Any, kind: IcebergType, at: str) -> Any:
        if _is_null(value):
            return None
        try:
            return _python_value(value, kind, at, convert)
        except InvalidInput:
            if at not in names:
                names.add(at)
                problems.append(_misfit(value, kind, at))
            return None

    plain_values = [convert(value, field.field_type, path) for value in values]
    kind = _nullable(nested_arrow_type(field.field_type))
    if names:
        return pa.nulls(len(values), kind)
    try:
        return arrow_values.array(plain_values, kind)
    except pa.ArrowInvalid as error:  # what only Arrow knows: a null as the key of a map
        problem = str(error)
        problems.append(Misfit(column=path, actual=problem, expected=str(field.field_type)))
        return pa.nulls(len(values), kind)


def _python_value(value: Any, kind: IcebergType, at: str, convert: Any) -> Any:
    prefix = f"{at}." if at else ""
    match kind:
        case StructType():
            if not isinstance(value, Mapping):
                raise InvalidInput("expected a dict")
            names = {field.name: field for field in kind.fields}
            for extra in value.keys() - names.keys():
                convert(_Extra(value[extra], tuple(names)), kind, f"{prefix}{extra}")
            return {
                field.name: convert(
                    value.get(field.name, field.write_default),
                    field.field_type,
                    f"{prefix}{field.name}",
                )
                for field in kind.fields
            }
        case ListType():
            if not isinstance(value, Sequence | np.ndarray) or isinstance(value, str | bytes):
                raise InvalidInput("expected a list")
            return [convert(item, kind.element_type, f"{prefix}element") for item in value]
        case MapType():
            pairs = value.items() if isinstance(value, Mapping) else value
            if isinstance(pairs, str | bytes) or not isinstance(pairs, Iterable):
                raise InvalidInput("expected a dict or pairs")
            return [
                (
                    convert(key, kind.key_type, f"{prefix}key"),
                    convert(item, kind.value_type, f"{prefix}value"),
                )
                for key, item in pairs
            ]
        case VariantType():
            from frazil.data.variants import variant_row

            return variant_row(value)
    return plain_value(value, kind)


class _Extra:
    """A value under a name the table does not have."""

    def __init__(self, value: Any, known: tuple[str, ...]) -> None:
        self.value = value
        self.known = known


def _misfit(value: Any, kind: IcebergType, at: str) -> Misfit:
    if isinstance(value, _Extra):
        problem = f"an extra column ({repr(value.value)[:60]})"
        expected = "only columns of the table: " + ", ".join(value.known)
        return Misfit(column=at, actual=problem, expected=expected, is_extra=True)
    problem = f"{repr(value)[:60]} ({type(value).__name__})"
    return Misfit(column=at, actual=problem, expected=str(kind))


def _is_null(value: Any) -> bool:
    """None, and the markers by which pandas says missing (NA, NaT)."""
    return value is None or type(value).__name__ in ("NAType", "NaTType")


def _nullable(kind: pa.DataType) -> pa.DataType:
    """The type with no required parts, so that Arrow can hold what is checked later."""
    if pa.types.is_struct(kind):
        return pa.struct([pa.field(child.name, _nullable(child.type)) for child in kind])
    if pa.types.is_list(kind):
        return pa.list_(pa.field("element", _nullable(kind.value_type)))
    if pa.types.is_map(kind):
        return pa.map_(kind.key_type, _nullable(kind.item_type))
    return kind
