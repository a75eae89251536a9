"""Rows from JSON: an object per line, or an array of them. Times keep their zones."""

from __future__ import annotations

import json
from typing import Any

import pyarrow as pa
import pyarrow.json

from frazil import arrow_compute as pc
from frazil.cli.typed_text import cast, fitted, has_zone, is_time
from frazil.errors import InvalidInput
from frazil.text_format import first_line


def read(content: bytes, name: str, schema: pa.Schema | None) -> pa.Table:
    """The rows; columns that the schema has get its types."""
    is_array = content[:1024].lstrip().startswith(b"[")
    if is_array:
        content = _as_lines(content, name)
    if not content.strip():
        raise InvalidInput(f"{name}: has no rows")
    declared = {} if schema is None else {field.name: field.type for field in schema}
    try:
        inferred = pyarrow.json.read_json(pa.BufferReader(content)).schema
        # Arrow's reader takes a zone in the text of a time and forgets it, and reads dates and
        # times of day as numbers only: they are read as text, and cast here.
        kinds = {field.name: declared.get(field.name, field.type) for field in inferred}
        explicit = pa.schema([(key, _as_text(kind)) for key, kind in kinds.items()])
        options = pyarrow.json.ParseOptions(explicit_schema=explicit)
        rows = pyarrow.json.read_json(pa.BufferReader(content), parse_options=options)
    except pa.ArrowInvalid as error:
        raise _located(content, name, declared, error, is_array=is_array) from error
    first = None if is_array else _first_line(content)
    for at, (key, kind) in enumerate(kinds.items()):
        column = rows.column(key)
        if key in declared and pa.types.is_string(column.type):
            typed = fitted(column, kind, key, name, lines=first)
        else:
            typed = _typed(column.combine_chunks(), kind, guesses=key not in declared)
        rows = rows.set_column(at, key, typed)
    return rows


def _as_lines(content: bytes, name: str) -> bytes:
    try:
        rows = json.loads(content)
    except json.JSONDecodeError as error:
        raise InvalidInput(f"{name}: {error}") from error
    return "\n".join(json.dumps(row) for row in rows).encode()


def _first_line(content: bytes) -> int | None:
    """The line of the first row; None where rows and lines do not go together."""
    lines = content.strip().split(b"\n")
    if any(not line.strip() for line in lines):
        return None
    return content[: len(content) - len(content.lstrip())].count(b"\n") + 1


def _as_text(kind: pa.DataType) -> pa.DataType:
    """A type whose dates and times are text."""
    if pa.types.is_temporal(kind):
        return pa.string()
    if pa.types.is_struct(kind):
        return pa.struct([pa.field(child.name, _as_text(child.type)) for child in kind])
    if pa.types.is_list(kind):
        return pa.list_(_as_text(kind.value_type))
    return kind


def _typed(column: pa.Array, kind: pa.DataType, *, guesses: bool) -> pa.Array:
    """A column in its type. Where types are guessed, text of times becomes times: with a zone if
    all of them say one; it stays text if only some do."""
    if guesses and pa.types.is_string(column.type):
        return _times(column)
    if pa.types.is_struct(kind):
        children = [
            _typed(pc.struct_field(column, at), kind.field(at).type, guesses=guesses)
            for at in range(kind.num_fields)
        ]
        names = [child.name for child in kind]
        return pa.StructArray.from_arrays(children, names, mask=column.is_null())
    if pa.types.is_list(kind):
        inner = _typed(column.flatten(), kind.value_type, guesses=guesses)
        return pa.ListArray.from_arrays(_offsets(column), inner)
    return column if column.type == kind else cast(column, kind)


def _offsets(column: pa.Array) -> pa.Array:
    """Offsets of a list whose values are flattened; null where a list is."""
    lengths = pc.fill_null(pc.list_value_length(column), 0)
    ends = pc.cumulative_sum(lengths).cast(pa.int32())
    starts = pa.concat_arrays([pa.array([0], pa.int32()), ends])
    nulls = pa.concat_arrays([column.is_null(), pa.array([False])])
    return pc.if_else(nulls, pa.scalar(None, pa.int32()), starts)


def _times(column: pa.Array) -> pa.Array:
    if column.null_count == len(column) or not pc.all(is_time(column)).as_py():
        return column
    zoned = has_zone(column)
    if pc.all(zoned).as_py():
        return column.cast(pa.timestamp("us", "UTC"))
    return column if pc.any(zoned).as_py() else column.cast(pa.timestamp("us"))


def _located(
    content: bytes, name: str, declared: dict[str, Any], error: Exception, *, is_array: bool
) -> InvalidInput:
    """What is wrong, with the line and column if a look at each line finds them."""
    what = "row" if is_array else "line"
    for at, line in enumerate(content.split(b"\n"), start=1):
        if not line.strip():
            continue
        try:
            row = json.loads(line)
        except ValueError as problem:
            return InvalidInput(f"{name}, {what} {at}: {problem}")
        if not isinstance(row, dict):
            return InvalidInput(f"{name}, {what} {at}: {line[:60]!r}; expected an object")
        for key, value in row.items():
            kind = declared.get(key)
            if kind is not None and not _takes(value, _as_text(kind)):
                return InvalidInput(
                    f"{name}, {what} {at}, column {key!r}: {value!r} is not of type {kind}"
                )
    return InvalidInput(f"{name}: {first_line(error)}")


def _takes(value: Any, kind: pa.DataType) -> bool:
    if value is None or pa.types.is_nested(kind) or pa.types.is_decimal(kind):
        return True
    try:
        pa.scalar(value, kind)
    except (pa.ArrowInvalid, pa.ArrowTypeError, OverflowError):
        return False
    return not (isinstance(value, bool) and not pa.types.is_boolean(kind))
