"""Commands between formats and places: upgrade, publish, import, export, register, clone,
recover."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Any

import typer

from frazil.cli.command_line import (
    AsOfOption,
    CatalogOption,
    DryRunOption,
    JsonOption,
    TableArgument,
    app,
    open_catalog,
    open_table,
)
from frazil.cli.terminal import output
from frazil.cli.which_catalog import pyiceberg_properties
from frazil.errors import InvalidInput
from frazil.text_format import counted

if TYPE_CHECKING:
    from frazil.table import Catalog, Table


@app.command()
def upgrade(
    table: TableArgument,
    dry_run: DryRunOption = False,
    catalog: CatalogOption = None,
    as_json: JsonOption = False,
) -> None:
    """Upgrade an Iceberg v1–v3 table of this catalog to v4, in place.

    Example: `frazil upgrade shop.orders --dry-run`
    """
    result = open_table(table, catalog).upgrade(dry_run=dry_run)
    output.emit_text(str(result), asdict(result), as_json=as_json)


@app.command()
def publish(
    table: TableArgument,
    version: Annotated[
        int | None,
        typer.Option(
            "--format-version",
            help="Iceberg version, 2 or 3 [default: property publish.format-version, else 3].",
        ),
    ] = None,
    as_of: AsOfOption = None,
    catalog: CatalogOption = None,
    as_json: JsonOption = False,
) -> None:
    """Publish a snapshot as Iceberg v2 or v3 metadata for other engines.

    Example: `frazil publish shop.orders --format-version 2`
    """
    published = open_table(table, catalog).publish(format_version=version, snapshot=as_of)
    output.emit_text(
        f"{published.metadata_location}\n{counted(published.manifests_written, 'manifest')} written"
        f", {published.manifests_reused} reused; "
        f"{counted(published.delete_files_written, 'delete file')} written",
        asdict(published),
        as_json=as_json,
    )


@app.command(name="import")
def import_table(
    source: Annotated[
        str,
        typer.Argument(
            help="Iceberg metadata file or table folder, a Paimon table folder, or "
            "catalog:namespace.table of PyIceberg's configuration."
        ),
    ],
    name: Annotated[
        str | None, typer.Argument(help="Name of the table in this catalog, as namespace.name.")
    ] = None,
    history: Annotated[
        bool,
        typer.Option(
            "--history", help="Paimon: import every snapshot, not only the latest and tagged ones."
        ),
    ] = False,
    dry_run: DryRunOption = False,
    catalog: CatalogOption = None,
    as_json: JsonOption = False,
) -> None:
    """Import an Iceberg or Paimon table in place; no data file is copied.

    Example: `frazil import /data/paimon/shop.db/orders shop.orders --dry-run`
    """
    opened = open_catalog(catalog)
    if _is_paimon(opened, source):
        _import_paimon(opened, source, name, history=history, dry_run=dry_run, as_json=as_json)
    else:
        _import_iceberg(opened, source, name, dry_run=dry_run, as_json=as_json)


def _is_paimon(catalog: Catalog, source: str) -> bool:
    from frazil.storage import is_local

    if ":" in source and not is_local(source) and "://" not in source:
        return False
    place = source.rstrip("/")
    storage = catalog._pointers.storage(place)
    return storage.exists(f"{place}/schema/schema-0")


def _import_paimon(
    catalog: Catalog,
    source: str,
    name: str | None,
    *,
    history: bool,
    dry_run: bool,
    as_json: bool,
) -> None:
    if dry_run:
        from frazil.paimon.adoption.takeover_report import dry_run as look

        report = look(source, storage=catalog._pointers.storage(source), history=history)
        value: dict[str, Any] = {"can-be-adopted": report.can_be_adopted, "report": str(report)}
        output.emit_text(str(report), value, as_json=as_json)
        return
    if name is None:
        raise InvalidInput("give the table a name: frazil import SOURCE namespace.name")
    adoption = catalog.adopt_paimon(name, source, history=history)
    value = {"table": name, "report": str(adoption)}
    output.emit_text(str(adoption), value, as_json=as_json)


def _import_iceberg(
    catalog: Catalog, source: str, name: str | None, *, dry_run: bool, as_json: bool
) -> None:
    prefix, _, rest = source.partition(":")
    configured = {} if "/" in prefix or rest.startswith("/") else pyiceberg_properties(prefix)
    if rest and configured:
        from pyiceberg.catalog import load_catalog

        table = catalog.open_iceberg(load_catalog(prefix, **configured), rest)
    else:
        table = catalog.open_iceberg(source)
    plan = table.upgrade(dry_run=True)
    if dry_run:
        output.emit_text(str(plan), asdict(plan), as_json=as_json)
        return
    if name is None:
        raise InvalidInput("give the table a name: frazil import SOURCE namespace.name")
    location = table._handle.state.metadata_location
    if location is None:
        raise InvalidInput(f"{source}: has no metadata file to register")
    result = catalog.register_table(name, location).upgrade()
    output.emit_text(str(result), asdict(result), as_json=as_json)


@app.command()
def export(
    table: TableArgument, catalog: CatalogOption = None, as_json: JsonOption = False
) -> None:
    """Write the table's metadata JSON and print its path.

    Example: `frazil export shop.orders`
    """
    where = open_table(table, catalog).export()
    output.emit_text(where, {"metadata": where}, as_json=as_json)


@app.command()
def register(
    table: TableArgument,
    metadata: Annotated[str, typer.Argument(help="Metadata JSON of the table.")],
    catalog: CatalogOption = None,
    as_json: JsonOption = False,
) -> None:
    """Register an existing table's metadata in this catalog.

    Example: `frazil register shop.orders /data/orders/metadata/00042-….metadata.json`
    """
    registered = open_catalog(catalog).register_table(table, metadata)
    _say_where(registered, as_json=as_json)


def _say_where(table: Table, *, as_json: bool) -> None:
    value = {"table": table.name, "location": table.location}
    output.emit_text(f"{table.name} at {table.location}", value, as_json=as_json)


@app.command()
def clone(
    table: TableArgument,
    name: Annotated[str, typer.Argument(help="Name of the clone, as namespace.name.")],
    as_of: AsOfOption = None,
    catalog: CatalogOption = None,
    as_json: JsonOption = False,
) -> None:
    """Create a table that shares the data files of another, with its own metadata.

    Example: `frazil clone shop.orders sandbox.orders`
    """
    opened = open_catalog(catalog)
    source = open_table(table, catalog)
    with output.bar("cloning", quiet=as_json) as step:
        copy = source.clone(opened, name, as_of=as_of, progress=step)
    _say_where(copy, as_json=as_json)


@app.command()
def recover(
    table: TableArgument,
    location: Annotated[str, typer.Argument(help="Folder of the table.")],
    catalog: CatalogOption = None,
    as_json: JsonOption = False,
) -> None:
    """Rebuild a lost catalog entry from the table's own files.

    Example: `frazil recover shop.orders s3://lake/shop/orders`
    """
    recovered, report = open_catalog(catalog).recover_table(table, location)
    value = {
        "table": recovered.name,
        "snapshots": len(report.history.snapshots),
        "certain": report.is_certain,
        "notes": list(report.notes),
    }
    text = [f"{recovered.name}: {len(report.history.snapshots)} snapshots"]
    if not report.is_certain:
        text.append("the files are ambiguous; check these points:")
    text += [f"  - {note}" for note in report.notes]
    output.emit_text("\n".join(text), value, as_json=as_json)
