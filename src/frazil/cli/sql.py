"""The command `frazil sql`: one statement, a file, standard input, or a shell."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from frazil.cli.command_line import CatalogOption, JsonOption, app, open_catalog
from frazil.cli.formats import Format, FormatOption, print_rows
from frazil.errors import InvalidInput

if TYPE_CHECKING:
    from frazil.sql.query_result import Result


@app.command()
def sql(
    text: Annotated[
        str | None,
        typer.Argument(help="SQL text; `-` reads standard input. Starts a shell if omitted."),
    ] = None,
    file: Annotated[Path | None, typer.Option("--file", "-f", help="Read SQL from a file.")] = None,
    format: FormatOption = Format.TABLE,
    catalog: CatalogOption = None,
    as_json: JsonOption = False,
) -> None:
    """Run SQL: queries, row changes, definitions, maintenance.

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
                print_rows(result.schema, result.to_reader(), format, as_json=True)
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
    print_rows(result.schema, result.to_reader(), format)
