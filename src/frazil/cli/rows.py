"""Commands on rows: append, upsert, scan, plan, explain, delete, update."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import pyarrow as pa
import typer

from frazil.cli import output
from frazil.cli.app import (
    AsOfOption,
    CatalogOption,
    JsonOption,
    TableArgument,
    WhereOption,
    app,
    open_table,
)
from frazil.cli.row_files import read_rows
from frazil.cli.tables import pairs
from frazil.commit.result import CommitResult
from frazil.errors import InvalidInput
from frazil.expr.sql_text import Expression

LimitOption = Annotated[int | None, typer.Option("--limit", "-n", help="At most so many rows.")]
ColumnsOption = Annotated[
    str | None, typer.Option("--columns", help="Comma-separated; _file, _pos, _row_id work too.")
]


def report(done: CommitResult, *, as_json: bool) -> None:
    """Print what a write did."""
    value = done.to_dict()
    if done.snapshot is not None:
        value["summary"] = dict(done.snapshot.summary)
    output.emit_text(str(done), value, as_json=as_json)


@app.command()
def append(
    table: TableArgument,
    files: Annotated[list[Path], typer.Argument(help="csv, json, parquet or arrow files.")],
    catalog: CatalogOption = None,
    as_json: JsonOption = False,
) -> None:
    """Append the rows of files.

    Example: `frazil append shop.orders monday.csv tuesday.parquet`
    """
    found = open_table(table, catalog)
    report(found.append(read_rows(files, into=found)), as_json=as_json)


@app.command()
def upsert(
    table: TableArgument,
    files: Annotated[list[Path], typer.Argument(help="csv, json, parquet or arrow files.")],
    on: Annotated[str | None, typer.Option("--on", help="Key columns, comma-separated.")] = None,
    catalog: CatalogOption = None,
    as_json: JsonOption = False,
) -> None:
    """Replace rows whose key exists, insert the others.

    Example: `frazil upsert shop.orders corrections.csv --on order_id`
    """
    found = open_table(table, catalog)
    keys = None if on is None else [name.strip() for name in on.split(",")]
    report(found.upsert(read_rows(files, into=found), keys), as_json=as_json)


@app.command()
def scan(
    table: TableArgument,
    where: WhereOption = None,
    columns: ColumnsOption = None,
    limit: LimitOption = 20,
    as_of: AsOfOption = None,
    count: Annotated[bool, typer.Option("--count", help="Only count the rows.")] = False,
    to: Annotated[
        Path | None, typer.Option("--to", help="Write to a .parquet, .csv or .arrow file.")
    ] = None,
    catalog: CatalogOption = None,
    as_json: JsonOption = False,
) -> None:
    """Read rows.

    Example: `frazil scan shop.orders --where "country = 'US'" --columns id,price --limit 5`
    """
    found = open_table(table, catalog)
    names = None if columns is None else [name.strip() for name in columns.split(",")]
    chosen = found.scan(where, names, as_of=as_of, limit=None if count or to is not None else limit)
    if count:
        total = chosen.count()
        output.emit_text(f"{total:,}", {"count": total}, as_json=as_json)
    elif to is not None:
        rows = _write(chosen.to_arrow(), to)
        output.emit_text(f"{rows:,} rows to {to}", {"rows": rows, "file": str(to)}, as_json=as_json)
    else:
        output.emit_arrow(chosen.to_arrow(), as_json=as_json)


def _write(rows: pa.Table, path: Path) -> int:
    import pyarrow.csv
    import pyarrow.feather
    import pyarrow.parquet

    match path.suffix.lower():
        case ".parquet":
            pyarrow.parquet.write_table(rows, path)
        case ".csv":
            pyarrow.csv.write_csv(rows, path)
        case ".arrow" | ".feather":
            pyarrow.feather.write_feather(rows, path)
        case other:
            raise InvalidInput(f"{path}: cannot write {other!r}; use .parquet, .csv or .arrow")
    return int(rows.num_rows)


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
    found = open_table(table, catalog)
    planned = found.scan(where, as_of=as_of).plan()
    if files:
        keys = ["location", "record_count", "file_size_in_bytes"]
        output.emit_arrow(planned.table.select(keys), as_json=as_json)
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
    """The same as plan: what a scan reads and prunes.

    Example: `frazil explain shop.orders --where "id = 7"`
    """
    plan(table, where, as_of, False, catalog, as_json)


@app.command()
def delete(
    table: TableArgument,
    where: Annotated[str, typer.Option("--where", "-w", help="Which rows.")],
    catalog: CatalogOption = None,
    as_json: JsonOption = False,
) -> None:
    """Delete the rows that match.

    Example: `frazil delete shop.orders --where "status = 'void'"`
    """
    done = open_table(table, catalog).delete(where)
    report(done, as_json=as_json)


@app.command()
def update(
    table: TableArgument,
    assignments: Annotated[list[str], typer.Option("--set", help="column=expression; repeat.")],
    where: WhereOption = None,
    catalog: CatalogOption = None,
    as_json: JsonOption = False,
) -> None:
    """Give rows that match new values.

    Example: `frazil update shop.orders --set "status='shipped'" --where "id = 7"`
    """
    values = {name: Expression(text=text) for name, text in pairs(assignments).items()}
    done = open_table(table, catalog).update(values, where)
    report(done, as_json=as_json)
