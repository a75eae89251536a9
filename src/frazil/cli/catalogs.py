"""Commands on whole catalogs: copy."""

from __future__ import annotations

from typing import Annotated

import typer

from frazil.cli.command_line import JsonOption, YesOption, app, confirm
from frazil.cli.terminal import output
from frazil.cli.which_catalog import settings_for

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
