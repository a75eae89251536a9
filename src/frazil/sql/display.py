"""Rows as text: exact values, in columns, as Markdown, HTML, CSV or JSON lines."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterable, Iterator
from datetime import date, datetime, time
from decimal import Decimal
from html import escape
from typing import Any
from uuid import UUID

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
            return json.dumps(plain(value), ensure_ascii=False)
    return str(value)


def plain(value: Any) -> Any:
    """A value as JSON has it; what JSON has no number for becomes text."""
    match value:
        case dict():
            return {str(key): plain(item) for key, item in value.items()}
        case list() | tuple():
            return [plain(item) for item in value]
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


def _rows(table: pa.Table) -> Iterator[list[Any]]:
    for batch in table.to_batches():
        columns = [column.to_pylist() for column in batch.columns]
        yield from (list(row) for row in zip(*columns, strict=True))


def _cells(table: pa.Table, limit: int | None) -> tuple[list[list[str]], list[bool], int]:
    shown = table if limit is None else table.slice(0, limit)
    rows = list(_rows(shown))
    numeric = [
        any(isinstance(row[at], _NUMBERS) and row[at] is not True for row in rows)
        and all(
            row[at] is None or (isinstance(row[at], _NUMBERS) and row[at] is not True)
            for row in rows
        )
        for at in range(table.num_columns)
    ]
    return [[cell(value) for value in row] for row in rows], numeric, table.num_rows - len(rows)


def text_table(table: pa.Table, *, limit: int | None = None) -> str:
    """Rows in columns; a last line tells when there are more than `limit`."""
    if not table.num_columns:
        return "(no columns)"
    rows, numeric, more = _cells(table, limit)
    rows = [line for row in rows for line in _lines(row)]
    names = list(table.column_names)
    widths = [
        max(len(name), *(len(row[at]) for row in rows), 1) if rows else max(len(name), 1)
        for at, name in enumerate(names)
    ]

    def line(values: list[str]) -> str:
        return " | ".join(
            value.rjust(width) if right else value.ljust(width)
            for value, width, right in zip(values, widths, numeric, strict=True)
        ).rstrip()

    lines = [line(names), "-+-".join("-" * width for width in widths), *map(line, rows)]
    if more > 0:
        lines.append(f"… the first {limit} rows")
    elif not rows:
        lines.append("(no rows)")
    return "\n".join(lines)


def _lines(row: list[str]) -> list[list[str]]:
    """A row whose cells have several lines as several rows."""
    cells = [value.split("\n") for value in row]
    height = max(map(len, cells))
    return [[lines[at] if at < len(lines) else "" for lines in cells] for at in range(height)]


def html_table(table: pa.Table, *, limit: int | None = None) -> str:
    """Rows as an HTML table."""
    rows, _, more = _cells(table, limit)
    head = "".join(f"<th>{escape(name)}</th>" for name in table.column_names)
    body = "".join(
        "<tr>" + "".join(f"<td>{escape(value)}</td>" for value in row) + "</tr>" for row in rows
    )
    note = f"<p>… the first {len(rows)} rows</p>" if more > 0 else ""
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>{note}"


def markdown_lines(table: pa.Table) -> Iterator[str]:
    """Rows as a Markdown table."""
    rows, numeric, _ = _cells(table, None)
    yield "| " + " | ".join(_escaped(name) for name in table.column_names) + " |"
    yield "|" + "|".join("---:" if right else "---" for right in numeric) + "|"
    for row in rows:
        yield "| " + " | ".join(_escaped(value) for value in row) + " |"


def _escaped(text: str) -> str:
    return text.replace("|", "\\|").replace("\n", "<br>")


def csv_lines(schema: pa.Schema, batches: Iterable[pa.RecordBatch]) -> Iterator[str]:
    """Rows as CSV with a header; NULL is an empty field, an empty text is quoted."""
    yield _csv_line(list(schema.names))
    for batch in batches:
        for row in _rows(pa.Table.from_batches([batch])):
            yield _csv_line(["" if value is None else cell(value) for value in row], row)


def _csv_line(values: list[str], row: list[Any] | None = None) -> str:
    if row is not None and any(value == "" for value in row):
        return ",".join(
            '""' if given == "" else _csv_line([value])
            for value, given in zip(values, row, strict=True)
        )
    buffer = io.StringIO()
    csv.writer(buffer, lineterminator="").writerow(values)
    text = buffer.getvalue()
    return "" if text == '""' else text


def json_lines(schema: pa.Schema, batches: Iterable[pa.RecordBatch]) -> Iterator[str]:
    """Rows as one JSON object per line."""
    names = list(schema.names)
    for batch in batches:
        for row in _rows(pa.Table.from_batches([batch])):
            yield json.dumps(dict(zip(names, map(plain, row), strict=True)), ensure_ascii=False)
