"""Commands that show what Frazil does: demo, bench."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from frazil.cli import output
from frazil.cli.app import JsonOption, app


@app.command()
def demo(
    folder: Annotated[
        Path, typer.Option("--to", help="Folder of the warehouse that is made.")
    ] = Path("demo-warehouse"),
    report: Annotated[Path, typer.Option("--report", help="Folder of the HTML report.")] = Path(
        "demo-report"
    ),
    spark: Annotated[
        bool, typer.Option("--spark/--no-spark", help="Run the pipeline on Spark.")
    ] = True,
    as_json: JsonOption = False,
) -> None:
    """Run the whole story on a small shop: stream, merge, prune, change feed, upgrade, report.

    Example: `frazil demo --to demo-warehouse --report demo-report`
    """
    from frazil.cli.demo import run_demo

    done = run_demo(folder, report=report, with_spark=spark, quiet=as_json)
    output.emit_text(str(done), done.to_dict(), as_json=as_json)


@app.command()
def bench(
    names: Annotated[
        list[str] | None, typer.Argument(help="Workloads; none runs all of them.")
    ] = None,
    full: Annotated[
        bool, typer.Option("--full", help="Full sizes; the default is quick, under 5 minutes.")
    ] = False,
    peers: Annotated[
        str | None, typer.Option("--peers", help="Only these peers, comma-separated.")
    ] = None,
    out: Annotated[Path | None, typer.Option("--out", help="Folder for the results.")] = None,
    as_json: JsonOption = False,
) -> None:
    """Measure Frazil beside PyIceberg, delta-rs, DuckLake, Paimon and Iceberg on Spark.

    Example: `frazil bench small_appends planning`
    """
    from frazil.cli.bench import run_bench

    wanted = None if peers is None else [peer.strip() for peer in peers.split(",")]
    code = run_bench(names or [], quick=not full, peers=wanted, out=out, as_json=as_json)
    raise typer.Exit(code)
