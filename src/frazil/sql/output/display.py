"""Rows as text: exact values, in columns, as Markdown, HTML, CSV or JSON lines."""

from __future__ import annotations

import io
import json
from collections.abc import Iterable, Iterator
from datetime import date, datetime, time
from decimal import Decimal
from typing import TYPE_CHECKING, Any
from uuid import UUID

from frazil.sql.output.text_layout import lay_out
from frazil.text_format import counted, escape

if TYPE_CHECKING:
    import pyarrow as pa

_NUMBERS = (int, float, Decimal)


def cell(value: Any) -> str:
    """A value in full, as SQL would show it."""
    match value:
        case None:
            return "NULL"
        case bool():
            return "true" if value else "false"
        case datetime():
            return value.isoformat(sep=" ")
        case date() | time():
            return value.isoformat()
        case Decimal():
            return f"{value:f}"
        case bytes():
            return value.hex()
        case str():
            return value
        case list() | dict() | tuple():
            return json.dumps(json_value(value), ensure_ascii=False)
    return str(value)


def json_value(value: Any) -> Any:
    """A value as JSON has it; what JSON has no number for becomes text."""
    match value:
        case dict():
            return {str(key): json_value(item) for key, item in value.items()}
        case list() | tuple():
            return [json_value(item) for item in value]
        case bytes():
            return value.hex()
        case datetime() | date() | time():
            return value.isoformat()
        case Decimal():
            return f"{value:f}"
        case UUID():
            return str(value)
        case float() if value != value or value in (float("inf"), float("-inf")):
            return str(value)
        case bool() | int() | float() | str() | None:
            return value
    return str(value)


def _rows(batches: Iterable[pa.RecordBatch]) -> Iterator[list[Any]]:
    for batch in batches:
        columns = [
            _python_values(field, column)
            for field, column in zip(batch.schema, batch.columns, strict=True)
        ]
        yield from (list(row) for row in zip(*columns, strict=True))


def _python_values(field: pa.Field, column: pa.Array) -> list[Any]:
    exact = values(column)
    if not field.metadata and not field.type.num_fields:
        return exact
    from frazil.data.variants import python_value

    return [python_value(value, field) for value in exact]


def values(column: pa.Array) -> list[Any]:
    """The exact values of a column as Python has them; nanoseconds, which Python lacks, as text."""
    import pyarrow as pa

    if pa.types.is_float32(column.type):  # the shortest text that is the same number
        shortest = column.cast(pa.string()).to_pylist()
        return [None if text is None else float(text) for text in shortest]
    if pa.types.is_timestamp(column.type) and column.type.unit == "ns":
        return list(column.cast(pa.string()).to_pylist())
    try:
        return list(column.to_pylist())
    except (OverflowError, ValueError):
        return _far_times(column)


def _far_times(column: pa.Array) -> list[str | None]:
    """Dates and times as text, for years that Python lacks; DuckDB's largest is infinity."""
    import numpy as np
    import pyarrow as pa

    is_date = pa.types.is_date32(column.type)
    unit: Any = "D" if is_date else column.type.unit
    largest = (1 << (31 if is_date else 63)) - 1
    numbers = column.cast(pa.int32() if is_date else pa.int64()).to_pylist()
    by_number = {None: None, largest: "infinity", -largest: "-infinity"}
    return [
        by_number[number]
        if number in by_number
        else str(np.datetime64(number, unit)).replace("T", " ")
        for number in numbers
    ]


def _cells(table: pa.Table, limit: int | None) -> tuple[list[list[str]], list[bool], int]:
    first_rows = table if limit is None else table.slice(0, limit)
    rows = list(_rows(first_rows.to_batches()))
    numeric = []
    for at in range(table.num_columns):
        filled = [row[at] for row in rows if row[at] is not None]
        are_numbers = all(isinstance(value, _NUMBERS) and value is not True for value in filled)
        numeric.append(bool(filled) and are_numbers)
    return [[cell(value) for value in row] for row in rows], numeric, table.num_rows - len(rows)


def text_table(table: pa.Table, *, limit: int | None = None, width: int | None = None) -> str:
    """Rows in columns. The last lines say if there are more than `limit`, and which columns did not
    fit the width."""
    rows, numeric, more = _cells(table, limit)
    lines = lay_out(list(table.column_names), rows, numeric=numeric, width=width)
    if more > 0:
        lines.append(f"… the first {counted(limit or 0, 'row')}")
    return "\n".join(lines)


def html_table(table: pa.Table, *, limit: int | None = None) -> str:
    """Rows as an HTML table."""
    rows, _, more = _cells(table, limit)
    head = "".join(f"<th>{escape(name)}</th>" for name in table.column_names)
    body = "".join(
        "<tr>" + "".join(f"<td>{escape(value)}</td>" for value in row) + "</tr>" for row in rows
    )
    note = f"<p>… the first {counted(len(rows), 'row')}</p>" if more > 0 else ""
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>{note}"


def markdown_lines(schema: pa.Schema, batches: Iterable[pa.RecordBatch]) -> Iterator[str]:
    """Rows as a Markdown table."""
    import pyarrow as pa

    yield "| " + " | ".join(_escaped(name) for name in schema.names) + " |"
    kinds = pa.types
    numeric = [
        kinds.is_integer(kind) or kinds.is_floating(kind) or kinds.is_decimal(kind)
        for kind in schema.types
    ]
    yield "|" + "|".join("---:" if right else "---" for right in numeric) + "|"
    for row in _rows(batches):
        yield "| " + " | ".join(_escaped(cell(value)) for value in row) + " |"


def _escaped(text: str) -> str:
    return text.replace("|", "\\|").replace("\n", "<br>")


def csv_lines(schema: pa.Schema, batches: Iterable[pa.RecordBatch]) -> Iterator[str]:
    """Rows as CSV with a header; NULL is an empty field, an empty text is quoted."""
    yield _csv_line(list(schema.names))
    for row in _rows(batches):
        yield _csv_line(["" if value is None else cell(value) for value in row], row)


def _csv_line(values: list[str], row: list[Any] | None = None) -> str:
    if row is not None and any(value == "" for value in row):
        return ",".join(
            '""' if raw == "" else _csv_line([value])
            for value, raw in zip(values, row, strict=True)
        )
    buffer = io.StringIO()
    import csv

    csv.writer(buffer, lineterminator="").writerow(values)
    text = buffer.getvalue()
    return "" if text == '""' else text


def json_lines(schema: pa.Schema, batches: Iterable[pa.RecordBatch]) -> Iterator[str]:
    """Rows as one JSON object per line."""
    for row in _rows(batches):
        record = dict(zip(schema.names, map(json_value, row), strict=True))
        yield json.dumps(record, ensure_ascii=False)
