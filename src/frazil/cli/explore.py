"""The command `explore`: the catalog as pages in a browser."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated
from urllib.parse import quote

import typer

from frazil.cli.command_line import CatalogOption, app, open_catalog
from frazil.cli.terminal import output

if TYPE_CHECKING:
    from frazil.catalog.names import Identifier


@app.command()
def explore(
    table: Annotated[
        str | None, typer.Argument(help="Table to show first, as namespace.name.")
    ] = None,
    catalog: CatalogOption = None,
    port: Annotated[int, typer.Option("--port", help="Port to listen on; 0 takes any.")] = 0,
    read_only: Annotated[bool, typer.Option("--read-only", help="Offer no changes.")] = False,
    sql_writes: Annotated[
        bool, typer.Option("--sql-writes", help="Let the SQL page change tables.")
    ] = False,
    no_open: Annotated[
        bool, typer.Option("--no-open", help="Print the address; open no browser.")
    ] = False,
) -> None:
    """See a table in the browser: its tree, what a filter prunes, every commit, and its health.

    Starts a server on this machine alone, until Ctrl-C.

    Example: `frazil explore shop.orders --catalog ./warehouse`
    """
    from frazil.catalog.names import Identifier
    from frazil.serve import run
    from frazil.serve.settings import Settings

    opened = open_catalog(catalog)
    start = None if table is None else Identifier.parse(opened.load_table(table).name)

    def ready(uri: str) -> None:
        address = f"{uri}/{'' if start is None else _view(start)}"
        output.console.print(
            f"{address}\n(Ctrl-C stops)", highlight=False, markup=False, soft_wrap=True
        )
        if not no_open:
            _show(address)

    run(
        opened,
        port=port,
        settings=Settings(is_read_only=read_only, sql_writes=sql_writes, start=start),
        ready=ready,
    )


def _view(name: Identifier) -> str:
    """The address of a table within the page."""
    levels = quote("\x1f".join(name.namespace), safe="")
    return f"#/{levels}/{quote(name.name, safe='')}/overview"


def _show(address: str) -> None:
    import webbrowser

    webbrowser.open(address)
