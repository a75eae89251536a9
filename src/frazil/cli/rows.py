"""Commands on rows: append, upsert, scan, plan, explain, delete, update."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from frazil.cli.command_line import (
    AsOfOption,
    CatalogOption,
    JsonOption,
    TableArgument,
    WhereOption,
    YesOption,
    app,
    confirm,
    open_table,
)
from frazil.cli.tables import pairs
from frazil.cli.terminal import output
from frazil.cli.terminal.formats import Format, FormatOption, print_rows, write_file
from frazil.text_format import counted

if TYPE_CHECKING:
    from frazil.commit.result import CommitResult

_SHOWN_ROWS = 20

LimitOption = Annotated[
    int | None,
    typer.Option(
        "--limit",
        "-n",
        min=0,
        help=f"Maximum number of rows [default: {_SHOWN_ROWS} as a table, else all].",
    ),
]
ColumnsOption = Annotated[
    str | None,
    typer.Option("--columns", help="Comma-separated columns, including _file, _pos and _row_id."),
]
FilesArgument = Annotated[
    list[Path],
    typer.Argument(
        help="CSV, JSON, Parquet or Arrow files, folders of them or patterns such as "
        "`2024/*.csv`; `-` reads standard input."
    ),
]


def report(result: CommitResult, *, as_json: bool) -> None:
    """Print what a write did."""
    value = result.to_dict()
    if result.snapshot is not None:
        value["summary"] = dict(result.snapshot.summary)
    output.emit_text(str(result), value, as_json=as_json)


@app.command()
def append(
    table: TableArgument,
    files: FilesArgument,
    merge_schema: Annotated[
        bool, typer.Option("--merge-schema", help="Add columns that the table lacks.")
    ] = False,
    catalog: CatalogOption = None,
    as_json: JsonOption = False,
) -> None:
    """Append rows from files, folders or standard input. Folders such as `day=2024-01-15` give
    their files a column.

    Example: `frazil append shop.orders monday.csv tuesday.parquet`
    """
    from frazil.cli.row_files import read_rows

    opened = open_table(table, catalog)
    with output.bar("reading", quiet=as_json) as step:
        rows = read_rows(files, into=opened, progress=step)
    mode = "merge" if merge_schema else "strict"
    report(opened.append(rows, schema=mode), as_json=as_json)


@app.command()
def upsert(
    table: TableArgument,
    files: FilesArgument,
    on: Annotated[str | None, typer.Option("--on", help="Key columns, comma-separated.")] = None,
    catalog: CatalogOption = None,
    as_json: JsonOption = False,
) -> None:
    """Update rows whose key exists and insert the others.

    Example: `frazil upsert shop.orders corrections.csv --on order_id`
    """
    from frazil.cli.row_files import read_rows

    opened = open_table(table, catalog)
    keys = None if on is None else [name.strip() for name in on.split(",")]
    with output.bar("reading", quiet=as_json) as step:
        rows = read_rows(files, into=opened, progress=step)
    report(opened.upsert(rows, keys), as_json=as_json)


@app.command()
def scan(
    table: TableArgument,
    where: WhereOption = None,
    columns: ColumnsOption = None,
    limit: LimitOption = None,
    as_of: AsOfOption = None,
    count: Annotated[bool, typer.Option("--count", help="Only count the rows.")] = False,
    to: Annotated[
        Path | None,
        typer.Option("--to", help="Write to a .parquet, .arrow, .csv, .jsonl or .json file."),
    ] = None,
    format: FormatOption = Format.TABLE,
    catalog: CatalogOption = None,
    as_json: JsonOption = False,
) -> None:
    """Read rows.

    Example: `frazil scan shop.orders --where "country = 'US'" --columns id,price --limit 5`
    """
    opened = open_table(table, catalog)
    names = None if columns is None else [name.strip() for name in columns.split(",")]
    is_cut = limit is None and not (count or to or as_json) and format is Format.TABLE
    chosen = opened.scan(where, names, as_of=as_of, limit=_SHOWN_ROWS + 1 if is_cut else limit)
    if count:
        total = chosen.count()
        output.emit_text(str(total), {"count": total}, as_json=as_json)
    elif to is not None:
        rows = write_file(chosen.arrow_schema, chosen.to_batches(), to)
        value = {"rows": rows, "file": str(to)}
        output.emit_text(f"{counted(rows, 'row')} written to {to}", value, as_json=as_json)
    else:
        max_rows = _SHOWN_ROWS if is_cut else None
        print_rows(
            chosen.arrow_schema, chosen.to_batches(), format, as_json=as_json, limit=max_rows
        )


@app.command()
def plan(
    table: TableArgument,
    where: WhereOption = None,
    as_of: AsOfOption = None,
    files: Annotated[bool, typer.Option("--files", help="List the files to read.")] = False,
    catalog: CatalogOption = None,
    as_json: JsonOption = False,
) -> None:
    """Show what planning a scan reads and prunes, level by level.

    Example: `frazil plan shop.orders --where "day = '2024-01-15'"`
    """
    opened = open_table(table, catalog)
    planned = opened.scan(where, as_of=as_of).plan()
    if files:
        keys = ["location", "record_count", "file_size_in_bytes"]
        listed = planned.table.select(keys)
        print_rows(listed.schema, listed.to_batches(), Format.TABLE, as_json=as_json)
        return
    output.emit_text(str(planned.report), planned.report.to_dict(), as_json=as_json)


@app.command()
def explain(
    table: TableArgument,
    where: WhereOption = None,
    as_of: AsOfOption = None,
    catalog: CatalogOption = None,
    as_json: JsonOption = False,
) -> None:
    """Alias of `plan`.

    Example: `frazil explain shop.orders --where "id = 7"`
    """
    plan(table, where, as_of, False, catalog, as_json)


@app.command()
def delete(
    table: TableArgument,
    where: Annotated[str, typer.Option("--where", "-w", help="Filter for the rows to delete.")],
    catalog: CatalogOption = None,
    as_json: JsonOption = False,
) -> None:
    """Delete matching rows.

    Example: `frazil delete shop.orders --where "status = 'void'"`
    """
    result = open_table(table, catalog).delete(where)
    report(result, as_json=as_json)


@app.command()
def update(
    table: TableArgument,
    assignments: Annotated[list[str], typer.Option("--set", help="column=expression; repeat.")],
    where: WhereOption = None,
    mode: Annotated[
        str | None,
        typer.Option(
            help="What is written: rows, columns or auto "
            "[default: table property write.column-update.mode]."
        ),
    ] = None,
    yes: YesOption = False,
    catalog: CatalogOption = None,
    as_json: JsonOption = False,
) -> None:
    """Update matching rows (all rows if --where is omitted).

    Example: `frazil update shop.orders --set "status='shipped'" --where "id = 7"`
    """
    from frazil.filter.text.sql_text import Expression

    opened = open_table(table, catalog)
    if where is None and not yes:
        rows = counted(opened.scan().count(), "row")
        confirm(f"Update all {rows} of {table}?", yes=yes, otherwise=f"Not updated: all {rows}")
    values = {name: Expression(text=text) for name, text in pairs(assignments).items()}
    result = opened.update(values, where, mode=mode)
    report(result, as_json=as_json)
