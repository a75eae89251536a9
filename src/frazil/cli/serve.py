"""The command `serve`: the catalog over HTTP."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from frazil.cli import output
from frazil.cli.command_line import CatalogOption, app, open_catalog
from frazil.errors import InvalidInput


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
            help="Name under which browsers open the explorer, if there are no tokens; repeat.",
        ),
    ] = None,
    sql_writes: Annotated[
        bool, typer.Option("--sql-writes", help="Let the explorer's SQL page change tables.")
    ] = False,
) -> None:
    """Serve the catalog to Iceberg clients such as Spark, PyIceberg, DuckDB and Trino.

    A browser that opens the address sees the explorer.

    Example: `frazil serve --catalog ./warehouse --port 8181`
    """
    from frazil.serve import run
    from frazil.serve.access import Access, TokenFile, WebTokens
    from frazil.serve.settings import Certificate, Settings

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
            clients_collect=clients_collect,
            plans_scans=plan_scans,
            allowed=tuple(allow or ()),
            names=tuple(name.lower() for name in names or ()),
            sql_writes=sql_writes,
        ),
        access=access,
        certificate=certificate,
        ready=lambda uri: output.console.print(f"serving {uri} (Ctrl-C stops)", highlight=False),
    )
