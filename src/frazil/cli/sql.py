"""The command `frazil sql`: one statement, a file, standard input, or a shell."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from enum import Enum
from pathlib import Path
from typing import Annotated

import pyarrow as pa
import typer

from frazil.cli import output
from frazil.cli.app import CatalogOption, JsonOption, app, open_catalog
from frazil.errors import InvalidInput
from frazil.sql.display import csv_lines, json_lines, markdown_lines, text_table
from frazil.sql.result import Result


class Format(Enum):
    """How rows are printed."""

    TABLE = "table"
    CSV = "csv"
    JSONL = "jsonl"
    MARKDOWN = "markdown"
    ARROW = "arrow"


@app.command()
def sql(
    text: Annotated[
        str | None,
        typer.Argument(help="SQL; `-` reads standard input. Without it, a shell is started."),
    ] = None,
    file: Annotated[Path | None, typer.Option("--file", "-f", help="Read SQL from a file.")] = None,
    format: Annotated[
        Format, typer.Option("--format", help="How to print rows; values are exact in all of them.")
    ] = Format.TABLE,
    catalog: CatalogOption = None,
    as_json: JsonOption = False,
) -> None:
    """Run SQL: queries, changes of rows, definitions, maintenance.

    Example: `frazil sql "SELECT country, sum(price) FROM shop.orders GROUP BY country"`
    """
    if text is not None and file is not None:
        raise InvalidInput("give either SQL or --file, not both")
    session = open_catalog(catalog).session()
    try:
        if text is None and file is None and sys.stdin.isatty():
            from frazil.cli.sql_shell import Shell

            Shell(session, lambda result: print_result(result, format)).loop()
            return
        if file is not None:
            text = _read(file)
        elif text is None or text == "-":
            text = sys.stdin.read()
        for result in session.results(text):
            if as_json:
                output.emit_json(result.to_pylist())
            else:
                print_result(result, format)
    finally:
        session.close()


def _read(file: Path) -> str:
    try:
        return file.read_text(encoding="utf-8")
    except OSError as error:
        raise InvalidInput(f"{file}: {error.strerror}") from error


def print_result(result: Result, format: Format) -> None:
    """Print the rows of a statement."""
    match format:
        case Format.TABLE:
            _print([text_table(result.to_arrow())])
        case Format.MARKDOWN:
            _print(markdown_lines(result.to_arrow()))
        case Format.CSV:
            _print(csv_lines(result.schema, result.to_reader()))
        case Format.JSONL:
            _print(json_lines(result.schema, result.to_reader()))
        case Format.ARROW:
            _write_arrow(result.schema, result.to_reader())


def _print(lines: Iterable[str]) -> None:
    for line in lines:
        sys.stdout.write(line + "\n")


def _write_arrow(schema: pa.Schema, batches: Iterator[pa.RecordBatch]) -> None:
    """Rows as an Arrow IPC stream."""
    with pa.ipc.new_stream(sys.stdout.buffer, schema) as stream:
        for batch in batches:
            stream.write_batch(batch)
