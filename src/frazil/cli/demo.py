"""`frazil demo`: runs the example in `examples/frazil_demo`, which wheels carry with them."""

from __future__ import annotations

import sys
from importlib import import_module
from pathlib import Path
from typing import Annotated, Any

import typer

import frazil
from frazil.cli.command_line import JsonOption, app
from frazil.cli.terminal import output
from frazil.errors import NotFound
from frazil.extras import missing as not_installed
from frazil.extras import needed


@app.command()
def demo(
    folder: Annotated[Path, typer.Option("--to", help="Folder for the warehouse.")] = Path(
        "demo-warehouse"
    ),
    report: Annotated[Path, typer.Option("--report", help="Folder for the HTML report.")] = Path(
        "demo-report"
    ),
    spark: Annotated[
        bool, typer.Option("--spark/--no-spark", help="Run the pipeline on Spark.")
    ] = True,
    as_json: JsonOption = False,
) -> None:
    """Run a guided demo on a small web-shop dataset; it leaves a warehouse and an HTML report.

    Example: `frazil demo --to demo-warehouse --report demo-report`
    """
    needed("pyiceberg_core", "frazil demo, which compares itself with PyIceberg,")
    if spark:
        needed("pyspark", "frazil demo with Spark (or give --no-spark)")
    outcome = _story().run_demo(folder, report=report, with_spark=spark, quiet=as_json)
    output.emit_text(str(outcome), outcome.to_dict(), as_json=as_json)


def _story() -> Any:
    """The example: from the checkout that the package is part of, else as it was installed."""
    examples = Path(frazil.__file__).resolve().parents[2] / "examples"
    if (examples / "frazil_demo").is_dir() and str(examples) not in sys.path:
        sys.path.insert(0, str(examples))
    try:
        return import_module("frazil_demo.story")
    except ModuleNotFoundError as missing:
        if missing.name is None or missing.name.startswith("frazil_demo"):
            raise NotFound(
                "the demo is not part of this installation; install Frazil from a wheel or run "
                "this in a checkout"
            ) from missing
        raise not_installed(missing.name, "frazil demo") from missing
