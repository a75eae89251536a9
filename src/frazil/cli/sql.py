"""The command `frazil sql`: one statement, a file, standard input, or a shell."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from frazil.cli.command_line import CatalogOption, JsonOption, app, open_catalog
from frazil.cli.terminal import output
from frazil.cli.terminal.formats import (
    MAX_ROWS,
    Format,
    FormatOption,
    RowDisplay,
    print_first,
    print_rows,
    write_file,
)
from frazil.errors import InvalidInput
from frazil.text_format import counted

if TYPE_CHECKING:
    from frazil.sql.output.query_result import Result
    from frazil.sql.session import Session


@app.command()
def sql(
    text: Annotated[
        str | None,
        typer.Argument(help="SQL text; `-` reads standard input. Starts a shell if omitted."),
    ] = None,
    file: Annotated[Path | None, typer.Option("--file", "-f", help="Read SQL from a file.")] = None,
    limit: Annotated[
        int | None,
        typer.Option(
            "--limit",
            "-n",
            min=0,
            help=f"Maximum number of rows [default: {MAX_ROWS} as a table, else all].",
        ),
    ] = None,
    to: Annotated[
        Path | None,
        typer.Option(
            "--to",
            help="Write the rows of the last statement to a .parquet, .arrow, .csv, .jsonl or "
            ".json file.",
        ),
    ] = None,
    threads: Annotated[
        int | None, typer.Option("--threads", min=1, help="Threads of the engine [default: all].")
    ] = None,
    memory_limit: Annotated[
        str | None,
        typer.Option("--memory-limit", help="Memory of the engine, e.g. 2GB [default: 80 %]."),
    ] = None,
    format: FormatOption = Format.TABLE,
    catalog: CatalogOption = None,
    as_json: JsonOption = False,
) -> None:
    """Run SQL: queries, row changes, definitions, maintenance.

    Example: `frazil sql "SELECT country, sum(price) FROM shop.orders GROUP BY country"`
    """
    if text is not None and file is not None:
        raise InvalidInput("give either SQL or --file, not both")
    session = open_catalog(catalog).session(threads=threads, memory_limit=memory_limit)
    settings = RowDisplay(format=format, max_rows=limit)
    try:
        if text is None and file is None and to is None and sys.stdin.isatty():
            from frazil.cli.terminal.sql_shell import Shell

            Shell(session, lambda result: print_result(result, settings), settings).loop()
            return
        if file is not None:
            text = _read(file)
        elif text is None or text == "-":
            text = sys.stdin.read()
        if to is not None:
            _write(session, text, to, as_json=as_json)
            return
        for result in session.results(text):
            print_result(result, settings, as_json=as_json)
    finally:
        session.close()


def _read(file: Path) -> str:
    try:
        return file.read_text(encoding="utf-8")
    except OSError as error:
        raise InvalidInput(f"{file}: {error.strerror}") from error


def _write(session: Session, text: str, file: Path, *, as_json: bool) -> None:
    """Run statements and write the rows of the last one, as they come, to a file."""
    result = session.sql(text)
    reader = result.to_reader()
    with output.bar("writing", quiet=as_json) as step:
        rows = write_file(reader.schema, reader, file, progress=step)
    value = {"rows": rows, "file": str(file)}
    output.emit_text(f"{counted(rows, 'row')} written to {file}", value, as_json=as_json)


def print_result(result: Result, display: RowDisplay, *, as_json: bool = False) -> None:
    """Print the rows of a statement: the first ones as a table, all in other formats."""
    if display.format is Format.TABLE and not as_json:
        print_first(
            result, MAX_ROWS if display.max_rows is None else display.max_rows, display.more
        )
        return
    from frazil.arrow_values import first_rows

    reader = result.to_reader()
    batches = first_rows(reader, display.max_rows)
    print_rows(reader.schema, batches, display.format, as_json=as_json)
