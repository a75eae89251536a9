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
        Path, typer.Option("--to", help="Where the warehouse and the report go.")
    ] = Path("demo-warehouse"),
    spark: Annotated[
        bool, typer.Option("--spark/--no-spark", help="Run the pipeline on Spark.")
    ] = True,
    as_json: JsonOption = False,
) -> None:
    """Run the whole story on a small shop: stream, merge, prune, change feed, upgrade, report.

    Example: `frazil demo --to demo-warehouse`
    """
    from frazil.cli.demo import run_demo

    done = run_demo(folder, with_spark=spark, quiet=as_json)
    output.emit_text(str(done), done.to_dict(), as_json=as_json)


@app.command()
def bench(
    names: Annotated[
        list[str] | None, typer.Argument(help="Workloads; none runs all of them.")
    ] = None,
    full: Annotated[
        bool, typer.Option("--full", help="Full sizes; the default is quick, under 5 minutes.")
    ] = False,
    as_json: JsonOption = False,
) -> None:
    """Measure Frazil beside PyIceberg, delta-rs, DuckLake, Paimon and Iceberg on Spark.

    Example: `frazil bench appends planning`
    """
    from frazil.cli.bench import run_bench

    done = run_bench(names or [], full=full, quiet=as_json)
    output.emit_text(str(done), done.to_dict(), as_json=as_json)
