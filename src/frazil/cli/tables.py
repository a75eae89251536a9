"""Commands on catalogs and tables: init, tables, create, describe, schema, drop, rename,
catalog copy."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from frazil.cli.command_line import (
    CatalogOption,
    JsonOption,
    TableArgument,
    YesOption,
    app,
    confirm,
    open_catalog,
    open_table,
)
from frazil.cli.terminal import output
from frazil.cli.which_catalog import settings_for
from frazil.errors import InvalidInput, NotFound
from frazil.text_format import counted, did_you_mean

if TYPE_CHECKING:
    from frazil.iceberg.schema import Schema
    from frazil.table import Table

_ABOUT = (
    "table",
    "uuid",
    "location",
    "format-version",
    "revisions",
    "rows",
    "partitioning",
    "sort-order",
)


@app.command()
def init(catalog: CatalogOption = None, as_json: JsonOption = False) -> None:
    """Create an embedded warehouse, or prepare a database.

    Example: `frazil init --catalog ./warehouse`
    """
    settings = settings_for(catalog)
    opened = settings.open(create=True)
    value = {"catalog": settings.uri, "warehouse": opened.warehouse, "from": settings.source}
    output.emit_text(
        f"ready: {settings.uri} (tables in {opened.warehouse})", value, as_json=as_json
    )


@app.command()
def tables(
    namespace: Annotated[str | None, typer.Argument(help="Only this namespace.")] = None,
    catalog: CatalogOption = None,
    as_json: JsonOption = False,
) -> None:
    """List tables.

    Example: `frazil tables shop`
    """
    opened = open_catalog(catalog)
    rows = [_line(opened.load_table(name)) for name in opened.list_tables(namespace)]
    empty = "no tables yet; create one with: frazil create ns.table --from data.parquet"
    output.emit_rows(rows, as_json=as_json, empty=empty)


def _line(table: Table) -> dict[str, Any]:
    from frazil.format.metadata.summary_totals import number

    snapshot = table.current_snapshot()
    summary = {"total-data-files": "0"} if snapshot is None else snapshot.summary
    return {
        "table": table.name,
        "format": table.metadata.format_version,
        "files": number(summary, "total-data-files"),
        "rows": _rows(table),
        "last-changed": output.when(table.metadata.last_updated_ms),
    }


def _rows(table: Table) -> int:
    """How many rows a table has: by its summary if possible, else counted."""
    from frazil.format.metadata.summary_totals import live_rows

    rows = live_rows(table.current_snapshot())
    return table.scan().count() if rows is None else rows


@app.command()
def create(
    table: TableArgument,
    columns: Annotated[
        list[str] | None,
        typer.Option(
            "--column", help="Column as name:type, e.g. id:long or price:decimal(10,2); repeatable."
        ),
    ] = None,
    like: Annotated[
        Path | None,
        typer.Option(
            "--from",
            help="Take the columns of a CSV, JSON, Parquet or Arrow file, or of a folder of them.",
        ),
    ] = None,
    load: Annotated[
        bool, typer.Option("--load", help="With --from: also load the rows of the file.")
    ] = False,
    partition_by: Annotated[
        list[str] | None,
        typer.Option(
            "--partition-by",
            "-p",
            help="Partition by, e.g. `day(ts)`, `bucket[16](id)` or `country`; repeatable.",
        ),
    ] = None,
    sort_by: Annotated[
        list[str] | None, typer.Option("--sort-by", help="Sort rows by this column; repeatable.")
    ] = None,
    properties: Annotated[
        list[str] | None, typer.Option("--set", help="Table property as key=value; repeatable.")
    ] = None,
    catalog: CatalogOption = None,
    as_json: JsonOption = False,
) -> None:
    """Create a table from column definitions, from a file's columns, or from a file with its rows.

    Example: `frazil create shop.orders --from orders.csv --load -p "day"`
    """
    from frazil.cli.row_files import read_rows

    if bool(columns) == (like is not None):
        raise InvalidInput("give either --column name:type (repeated) or --from FILE")
    if load and like is None:
        raise InvalidInput("--load needs --from FILE")
    with output.bar("reading", quiet=as_json) as step:
        rows = None if like is None else read_rows([like], progress=step)
    schema = _schema(columns or []) if rows is None else rows if load else rows.schema
    created = open_catalog(catalog).create_table(
        table,
        schema,
        partition_by=partition_by or None,
        sort_by=sort_by or None,
        properties=pairs(properties),
    )
    loaded = f" with {counted(_rows(created), 'row')}" if load else ""
    text = f"created {created.name}{loaded} at {created.location}"
    output.emit_text(text, _description(created), as_json=as_json)


def _schema(columns: list[str]) -> Schema:
    from frazil.filter.text.type_text import parse_type
    from frazil.iceberg.schema import Schema
    from frazil.iceberg.types import NestedField

    fields = []
    for index, column in enumerate(columns, start=1):
        name, colon, kind = column.partition(":")
        if not colon or not name:
            raise InvalidInput(f"--column {column!r}; expected name:type, e.g. id:long")
        required = kind.lower().endswith(" not null")
        text = kind[: -len(" not null")] if required else kind
        fields.append(NestedField(index, name, parse_type(text), required=required))
    return Schema(*fields)


def pairs(properties: list[str] | None) -> dict[str, str]:
    """`key=value` arguments as a mapping."""
    settings: dict[str, str] = {}
    for item in properties or []:
        key, equals, value = item.partition("=")
        if not equals:
            raise InvalidInput(f"{item!r}; expected key=value")
        settings[key] = value
    return settings


@app.command()
def describe(
    table: TableArgument, catalog: CatalogOption = None, as_json: JsonOption = False
) -> None:
    """Describe a table: columns, partitioning, snapshot, properties.

    Example: `frazil describe shop.orders`
    """
    opened = open_table(table, catalog)
    value = _description(opened)
    if as_json:
        output.emit_json(value)
        return
    document = {**value, "revisions": _manifests(value["revisions"])}
    output.emit_rows([{"": key, "value": document[key]} for key in _ABOUT], as_json=False)
    output.emit_rows(value["columns"], as_json=False, title="columns")
    output.emit_rows(
        [{"key": key, "value": item} for key, item in value["snapshot"].items()],
        as_json=False,
        title="current snapshot",
        empty="no snapshot yet",
    )
    if value["properties"]:
        output.emit_rows(
            [{"key": key, "value": item} for key, item in value["properties"].items()],
            as_json=False,
            title="properties",
        )


def _manifests(revisions: dict[str, int]) -> str:
    counts = (f"{name} ({counted(count, 'manifest')})" for name, count in revisions.items())
    return ", ".join(counts) or "none"


def _description(table: Table) -> dict[str, Any]:
    snapshot = table.current_snapshot()
    reader = table._handle.reader()
    return {
        "table": table.name,
        "uuid": str(table.metadata.table_uuid),
        "location": table.location,
        "format-version": table.metadata.format_version,
        "revisions": reader.revisions(reader.tree(snapshot, keys=())),
        "partitioning": [f"{f.name}: {f.transform}" for f in table.metadata.spec().fields]
        or "none",
        "sort-order": [str(f) for f in table.metadata.sort_order().fields] or "none",
        "rows": _rows(table),
        "columns": _columns(table.metadata.schema()),
        "snapshot": {}
        if snapshot is None
        else {
            "snapshot-id": int(snapshot.snapshot_id),
            "sequence-number": snapshot.sequence_number,
            "committed": output.when(snapshot.timestamp_ms),
            **snapshot.summary,
        },
        "refs": {
            name: {"kind": ref.kind.value, "snapshot-id": int(ref.snapshot_id)}
            for name, ref in table.metadata.refs.items()
        },
        "properties": dict(table.properties),
    }


def _columns(schema: Schema) -> list[dict[str, Any]]:
    return [
        {
            "id": field.field_id,
            "name": field.name,
            "type": str(field.field_type),
            "required": field.required,
            "doc": field.doc,
        }
        for field in schema.fields
    ]


@app.command()
def schema(
    table: TableArgument, catalog: CatalogOption = None, as_json: JsonOption = False
) -> None:
    """Show the columns of a table.

    Example: `frazil schema shop.orders`
    """
    output.emit_rows(_columns(open_table(table, catalog).metadata.schema()), as_json=as_json)


@app.command()
def drop(
    table: TableArgument,
    purge: Annotated[bool, typer.Option("--purge", help="Delete the files too.")] = False,
    yes: YesOption = False,
    catalog: CatalogOption = None,
    as_json: JsonOption = False,
) -> None:
    """Drop a table from the catalog; with --purge, also delete the files that only it uses.

    Example: `frazil drop shop.orders --purge --yes`
    """
    opened = open_catalog(catalog)
    loaded = opened.load_table(table)
    rows, files = loaded.scan().count(), loaded.scan().plan().table.num_rows
    contents = f"{counted(rows, 'row')}, {counted(files, 'data file')}"
    question = f"Drop {table} ({contents}){' and delete its files' if purge else ''}?"
    confirm(question, yes=yes, otherwise=f"Not dropped: {table}")
    purged = opened.drop_table(table, purge=purge)
    text = (
        f"dropped {table} ({contents}); its files are kept"
        if purged is None
        else f"{purged} ({contents})"
    )
    document = {"dropped": table, "purged": purge, "rows": rows, "data-files": files}
    document |= {} if purged is None else purged.to_dict()
    output.emit_text(text, document, as_json=as_json)


@app.command()
def rename(
    table: TableArgument,
    to: Annotated[str, typer.Argument(help="New name, as namespace.name.")],
    catalog: CatalogOption = None,
    as_json: JsonOption = False,
) -> None:
    """Rename a table.

    Example: `frazil rename shop.orders shop.orders_old`
    """
    renamed = open_catalog(catalog).rename_table(table, to)
    output.emit_text(f"renamed to {renamed.name}", {"table": renamed.name}, as_json=as_json)


@app.command(name="set")
def set_properties(
    table: TableArgument,
    properties: Annotated[
        list[str], typer.Argument(help="key=value to set; a key alone removes the property.")
    ],
    catalog: CatalogOption = None,
    as_json: JsonOption = False,
) -> None:
    """Set or remove table properties.

    Example: `frazil set shop.orders write.root.max-data-entries=200`
    """
    opened = open_table(table, catalog)
    updates = pairs([item for item in properties if "=" in item])
    removals = [item for item in properties if "=" not in item]
    for key in removals:
        if key not in opened.properties:
            hint = did_you_mean(key, opened.properties)
            raise NotFound(f"{table}: property {key} is not set, so it cannot be removed{hint}")
    for note in opened.set_properties(updates, remove=removals).notes:
        output.errors.print(note, markup=False, highlight=False, soft_wrap=True)
    output.emit_rows(
        [{"key": key, "value": item} for key, item in opened.properties.items()], as_json=as_json
    )


catalog = typer.Typer(no_args_is_help=True, help="Copy the names of one catalog to another.")
app.add_typer(catalog, name="catalog")


@catalog.command("copy")
def copy(
    source: Annotated[str, typer.Argument(help="A folder, bucket, database, server or name.")],
    target: Annotated[str, typer.Argument(help="The catalog that gets the tables.")],
    table: Annotated[
        list[str] | None, typer.Option("--table", help="Only this table; repeatable.")
    ] = None,
    drop_source: Annotated[
        bool, typer.Option("--drop-source", help="Take the tables out of the source.")
    ] = False,
    yes: YesOption = False,
    as_json: JsonOption = False,
) -> None:
    """Copy namespaces, views and the pointers of tables to another catalog; files stay.

    Example: `frazil catalog copy postgresql://host/tables s3://bucket/warehouse`
    """
    from frazil.catalog.copy_catalog import copy_catalog

    if drop_source:
        confirm(
            f"Take the tables out of {source} once they are in {target}?",
            yes=yes,
            otherwise="nothing was copied",
        )
    with settings_for(source).open() as old, settings_for(target).open(create=True) as new:
        copied = copy_catalog(old._pointers, new._pointers, tables=table, drop_source=drop_source)
    output.emit_text(str(copied), copied.to_dict(), as_json=as_json)


__all__ = ["pairs"]
