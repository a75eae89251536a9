"""The commands `serve` and `explore`: the catalog over HTTP, and as pages in a browser."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated
from urllib.parse import quote

import typer

from frazil.cli.command_line import CatalogOption, app, open_catalog
from frazil.cli.terminal import output
from frazil.errors import InvalidInput

if TYPE_CHECKING:
    from frazil.catalog.names import Identifier


@app.command()
def serve(
    catalog: CatalogOption = None,
    host: Annotated[str, typer.Option("--host", help="Address to listen on.")] = "127.0.0.1",
    port: Annotated[int, typer.Option("--port", help="Port to listen on; 0 takes any.")] = 8181,
    read_only: Annotated[bool, typer.Option("--read-only", help="Refuse every change.")] = False,
    allow_client_gc: Annotated[
        bool,
        typer.Option(
            "--allow-client-gc",
            "--clients-collect",
            help="Let clients delete files. Only for tables that nothing else writes.",
        ),
    ] = False,
    show_v4: Annotated[
        bool,
        typer.Option(
            "--show-v4",
            help="Draft: load tables as they are from /v2; /v1 refuses them without a prefix.",
        ),
    ] = False,
    plan_scans: Annotated[
        bool | None,
        typer.Option(
            "--plan-scans/--no-plan-scans",
            help="Ask clients to let the server plan their scans; by default if it is read-only.",
        ),
    ] = None,
    allow: Annotated[
        list[str] | None,
        typer.Option(
            "--allow", help="Location outside the warehouse that tables may use; repeatable."
        ),
    ] = None,
    tokens: Annotated[
        Path | None,
        typer.Option("--tokens", help="TOML file with hashed bearer tokens and their rights."),
    ] = None,
    jwks: Annotated[
        str | None,
        typer.Option("--jwks", help="Address of the keys that sign JSON web tokens."),
    ] = None,
    audience: Annotated[
        str | None, typer.Option("--audience", help="Audience that web tokens must name.")
    ] = None,
    certfile: Annotated[
        Path | None,
        typer.Option("--certfile", help="PEM file of a certificate: serve over TLS."),
    ] = None,
    keyfile: Annotated[
        Path | None,
        typer.Option("--keyfile", help="PEM file of the certificate's key, if it is apart."),
    ] = None,
    names: Annotated[
        list[str] | None,
        typer.Option(
            "--name",
            help="Further host name by which clients reach a server without tokens; repeatable.",
        ),
    ] = None,
    sql_writes: Annotated[
        bool, typer.Option("--sql-writes", help="Let the explorer's SQL page change tables.")
    ] = False,
    max_connections: Annotated[
        int, typer.Option("--max-connections", help="Open connections at once.")
    ] = 512,
    max_queries: Annotated[
        int,
        typer.Option(
            "--max-queries", help="Plans worked on at once, and half as many SQL statements."
        ),
    ] = 4,
    max_queries_per_principal: Annotated[
        int,
        typer.Option(
            "--max-queries-per-principal",
            help="Plans and SQL statements of one token that are worked on or wait.",
        ),
    ] = 16,
    query_timeout: Annotated[
        float, typer.Option("--query-timeout", help="Seconds for a plan or a SQL statement.")
    ] = 60,
    max_memory: Annotated[
        int,
        typer.Option(
            "--max-memory",
            help="MiB that the process may allocate, threads included; 0 for no limit. Linux only.",
        ),
    ] = 4096,
) -> None:
    """Serve the catalog to Iceberg clients such as Spark, PyIceberg, DuckDB and Trino.

    A browser that opens the address sees the explorer.

    Example: `frazil serve --catalog ./warehouse --port 8181`
    """
    from frazil.serve import run
    from frazil.serve.access.principals import Access, TokenFile, WebTokens
    from frazil.serve.running import bound_memory
    from frazil.serve.settings import Certificate, Settings

    bound_memory(max_memory)
    if keyfile is not None and certfile is None:
        raise InvalidInput("--keyfile needs --certfile")
    certificate = None
    if certfile is not None:
        key = None if keyfile is None else str(keyfile)
        certificate = Certificate(file=str(certfile), key=key)
    if tokens is not None and jwks is not None:
        raise InvalidInput("give either --tokens or --jwks")
    access: Access | None = None
    if tokens is not None:
        access = TokenFile.read(tokens)
    elif jwks is not None:
        access = WebTokens(jwks, audience=audience)

    run(
        open_catalog(catalog),
        host=host,
        port=port,
        settings=Settings(
            is_read_only=read_only,
            allow_client_gc=allow_client_gc,
            shows_v4=show_v4,
            plans_scans=plan_scans,
            allowed=tuple(allow or ()),
            names=tuple(name.lower() for name in names or ()),
            sql_writes=sql_writes,
            max_connections=max_connections,
            max_queries=max_queries,
            max_queries_per_principal=max_queries_per_principal,
            query_timeout_s=query_timeout,
        ),
        access=access,
        certificate=certificate,
        ready=lambda uri: output.console.print(f"serving {uri} (Ctrl-C stops)", highlight=False),
    )


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
