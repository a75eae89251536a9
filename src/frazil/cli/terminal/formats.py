"""Rows of a table on standard output or in a file: exact values, in the format asked for."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from frazil.cli.terminal import output
from frazil.errors import InvalidInput, StorageError
from frazil.maintenance.progress import Progress, silent
from frazil.value_classes import dataclass

if TYPE_CHECKING:
    import pyarrow as pa

    from frazil.sql.output.query_result import Result


class Format(Enum):
    """How rows are printed."""

    TABLE = "table"
    CSV = "csv"
    JSONL = "jsonl"
    MARKDOWN = "markdown"
    ARROW = "arrow"


FormatOption = Annotated[
    Format, typer.Option("--format", help="Output format; values are printed exactly.")
]


def print_rows(
    schema: pa.Schema,
    batches: Iterable[pa.RecordBatch],
    format: Format,
    *,
    as_json: bool = False,
    limit: int | None = None,
) -> None:
    """Print rows as they come; a table of text shows `limit` of them and says so."""
    from frazil.sql.output.display import csv_lines, json_lines, markdown_lines, text_table

    match format:
        case _ if as_json:
            _write_json(json_lines(schema, batches))
        case Format.TABLE:
            output.print_table(text_table(_table(schema, batches), limit=limit, width=width()))
        case Format.MARKDOWN:
            _print(markdown_lines(schema, batches))
        case Format.CSV:
            _print(csv_lines(schema, batches))
        case Format.JSONL:
            _print(json_lines(schema, batches))
        case Format.ARROW:
            _write_arrow(schema, batches)


def print_first(result: Result, rows: int, more: str) -> None:
    """Print the first rows of a result as a table, and say if there are more."""
    from frazil.sql.output.display import text_table

    text = text_table(result.head(rows + 1), limit=rows, width=width())
    if result.head(rows + 1).num_rows > rows:
        text += f"; {more}"
    output.print_table(text)


def width() -> int | None:
    """The width of the terminal; none when the output goes elsewhere."""
    return output.console.width if output.is_terminal() else None


def _table(schema: pa.Schema, batches: Iterable[pa.RecordBatch]) -> pa.Table:
    import pyarrow as pa

    return pa.Table.from_batches(list(batches), schema=schema)


def _print(lines: Iterable[str]) -> None:
    for line in lines:
        sys.stdout.write(line + "\n")


def _write_json(lines: Iterator[str]) -> None:
    """One JSON array, written row by row."""
    sys.stdout.write("[")
    before = "\n"
    for line in lines:
        sys.stdout.write(f"{before}  {line}")
        before = ",\n"
    sys.stdout.write("]\n" if before == "\n" else "\n]\n")


def _write_arrow(schema: pa.Schema, batches: Iterable[pa.RecordBatch]) -> None:
    """Rows as an Arrow IPC stream."""
    import pyarrow as pa

    if sys.stdout.isatty():
        raise InvalidInput("Arrow data is not text; send it to a file or a pipe")
    with pa.ipc.new_stream(sys.stdout.buffer, schema) as stream:
        for batch in batches:
            stream.write_batch(batch)


def write_file(
    schema: pa.Schema,
    batches: Iterable[pa.RecordBatch],
    path: Path,
    *,
    progress: Progress = silent,
) -> int:
    """Write rows as they come to a file in the format of its extension; returns how many there
    were. A file is there as a whole or not at all."""
    import pyarrow as pa

    from frazil.sql.output.display import csv_lines, json_lines

    counted = _Counted(batches, progress)
    if not path.parent.is_dir():
        raise InvalidInput(f"{path}: folder {path.parent} does not exist")
    target, path = path, path.with_name(f".{path.name}.part{path.suffix}")
    try:
        match path.suffix.lower():
            case ".parquet":
                import pyarrow.parquet

                with pyarrow.parquet.ParquetWriter(path, schema) as parquet:
                    for batch in counted:
                        parquet.write_batch(batch)
            case ".arrow" | ".feather":
                with pa.OSFile(str(path), "wb") as sink, pa.ipc.new_file(sink, schema) as arrow:
                    for batch in counted:
                        arrow.write_batch(batch)
            case ".csv":
                _write_lines(path, csv_lines(schema, counted))
            case ".jsonl" | ".ndjson":
                _write_lines(path, json_lines(schema, counted))
            case ".json":
                _write_lines(path, _array(json_lines(schema, counted)))
            case other:
                raise InvalidInput(
                    f"{target}: cannot write {other!r}; use .parquet, .arrow, .csv, .jsonl or .json"
                )
        path.replace(target)
    except OSError as error:
        raise StorageError(f"{target}: {error.strerror or error}") from error
    finally:
        path.unlink(missing_ok=True)
    return counted.rows


def _array(lines: Iterable[str]) -> Iterator[str]:
    """The lines of one JSON array."""
    before = None
    for line in lines:
        yield "[" if before is None else f"{before},"
        before = f"  {line}"
    yield "[" if before is None else before
    yield "]"


class _Counted:
    """Batches, with the number of rows that went by."""

    def __init__(self, batches: Iterable[pa.RecordBatch], progress: Progress) -> None:
        self._batches = batches
        self._progress = progress
        self.rows = 0

    def __iter__(self) -> Iterator[pa.RecordBatch]:
        for batch in self._batches:
            self.rows += batch.num_rows
            self._progress(self.rows, 0, "rows written")
            yield batch


def _write_lines(path: Path, lines: Iterable[str]) -> None:
    with path.open("w", encoding="utf-8", newline="") as stream:
        stream.writelines(f"{line}\n" for line in lines)


MAX_ROWS: Final = 100
"""Rows of a query that are shown as a table, unless more are asked for."""


@dataclass(slots=True, kw_only=True)
class RowDisplay:
    """The format of rows, how many of them, and whether times are told. A shell changes it."""

    format: Format = Format.TABLE
    max_rows: int | None = None
    timing: bool = False
    more: str = "more with --limit, all with --format csv"
    """What to do for the rows that are not shown."""
