"""The command `serve`: the catalog over HTTP."""

from __future__ import annotations

from typing import Annotated

import typer

from frazil.cli import output
from frazil.cli.app import CatalogOption, app, open_catalog


@app.command()
def serve(
    catalog: CatalogOption = None,
    host: Annotated[str, typer.Option("--host", help="Address to listen on.")] = "127.0.0.1",
    port: Annotated[int, typer.Option("--port", help="Port to listen on; 0 takes any.")] = 8181,
    read_only: Annotated[bool, typer.Option("--read-only", help="Refuse every change.")] = False,
    clients_collect: Annotated[
        bool,
        typer.Option(
            "--clients-collect",
            help="Let clients delete files. Only for tables that nothing else writes.",
        ),
    ] = False,
    allow: Annotated[
        list[str] | None,
        typer.Option("--allow", help="Location outside the warehouse that tables may use; repeat."),
    ] = None,
) -> None:
    """Serve the catalog to Iceberg clients such as Spark, PyIceberg, DuckDB and Trino.

    Example: `frazil serve --catalog ./warehouse --port 8181`
    """
    from frazil.serve import run
    from frazil.serve.settings import Settings

    run(
        open_catalog(catalog),
        host=host,
        port=port,
        settings=Settings(
            is_read_only=read_only, clients_collect=clients_collect, allowed=tuple(allow or ())
        ),
        ready=lambda uri: output.console.print(f"serving {uri} (Ctrl-C stops)", highlight=False),
    )
