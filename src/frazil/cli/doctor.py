"""The command `doctor`: what is installed, what works, and what to do about the rest."""

from __future__ import annotations

import os
import platform
import re
import shutil
import subprocess
import uuid
from collections.abc import Iterator
from dataclasses import asdict
from importlib import metadata
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Final

import typer

import frazil
from frazil.cli.command_line import CatalogOption, JsonOption, app
from frazil.cli.terminal import output
from frazil.cli.which_catalog import CatalogSettings, settings_for
from frazil.errors import FrazilError, NotFound
from frazil.extras import EXTRAS
from frazil.text_format import counted
from frazil.value_classes import frozen

if TYPE_CHECKING:
    from frazil.table import Catalog

OK: Final = "ok"
MISSING: Final = "missing"
FAILED: Final = "failed"

_CORE: Final = ("pyarrow", "pyiceberg", "duckdb", "sqlalchemy")
_USES: Final = {
    "pandas": "to_pandas()",
    "polars": "to_polars()",
    "pyspark": "Spark and the demo",
    "psycopg": "catalogs in PostgreSQL",
    "starlette": "frazil serve",
    "pyiceberg_core": "the demo's comparison with PyIceberg",
}
_JAVA: Final = 17


@frozen
class Finding:
    """One thing that was checked."""

    what: str
    state: str
    found: str
    advice: str = ""


@app.command()
def doctor(catalog: CatalogOption = None, as_json: JsonOption = False) -> None:
    """Check this installation: versions, catalog, storage, Java and Spark, and what to install.

    Exit code 1 if the catalog or its storage does not work.

    Example: `frazil doctor --catalog ./warehouse`
    """
    findings = [*_packages(), _java(), *_catalog(catalog)]
    output.emit_rows([asdict(finding) for finding in findings], as_json=as_json)
    if any(finding.state == FAILED for finding in findings):
        raise typer.Exit(1)


def _packages() -> Iterator[Finding]:
    yield Finding(what="frazil", state=OK, found=frazil.__version__)
    yield Finding(what="python", state=OK, found=platform.python_version())
    for name in _CORE:
        yield Finding(what=name, state=OK, found=_version(name))
    for name, use in _USES.items():
        if find_spec(name) is not None:
            yield Finding(what=name, state=OK, found=_version(name))
        else:
            advice = f"for {use}: pip install 'frazil[{EXTRAS[name]}]'"
            yield Finding(what=name, state=MISSING, found="not installed", advice=advice)


def _version(name: str) -> str:
    try:
        return metadata.version(name.replace("_", "-"))
    except metadata.PackageNotFoundError:
        return "installed, version unknown"


def _java() -> Finding:
    """Java as Spark would find it: by `JAVA_HOME`, else by the path."""
    home = os.environ.get("JAVA_HOME")
    command = str(Path(home, "bin", "java")) if home else shutil.which("java")
    advice = f"for Spark: install Java {_JAVA} or newer, or set JAVA_HOME"
    if command is None or not os.path.exists(command):
        where = "not on the path" if command is None else f"{command} does not exist"
        return Finding(what="java", state=MISSING, found=where, advice=advice)
    try:
        printed = subprocess.run(
            [command, "-version"], capture_output=True, text=True, timeout=30, check=False
        ).stderr
    except (OSError, subprocess.TimeoutExpired) as error:
        return Finding(what="java", state=MISSING, found=str(error), advice=advice)
    version = re.search(r'version "((\d+)[^"]*)"', printed)
    if version is None or int(version[2]) < _JAVA:
        release = printed.strip().splitlines()[0] if printed.strip() else "no version"
        return Finding(what="java", state=MISSING, found=release, advice=advice)
    return Finding(what="java", state=OK, found=f"{version[1]} at {command}")


def _catalog(catalog: str | None) -> Iterator[Finding]:
    try:
        settings = settings_for(catalog)
        opened = settings.open()
    except FrazilError as error:
        yield Finding(what="catalog", state=FAILED, found=str(error))
        return
    try:
        with opened:
            yield from _opened(opened, settings)
    except NotFound as error:
        advice = "frazil init, or name another with --catalog"
        yield Finding(what="catalog", state=MISSING, found=str(error), advice=advice)
    except FrazilError as error:
        yield Finding(what="catalog", state=FAILED, found=str(error))


def _opened(opened: Catalog, settings: CatalogSettings) -> Iterator[Finding]:
    tables = opened.list_tables()
    summary = f"{counted(len(tables), 'table')}, by {settings.source}"
    yield Finding(what="catalog", state=OK, found=summary)
    if opened.warehouse is None:
        advice = "give tables a location, or the catalog a warehouse"
        yield Finding(what="storage", state=MISSING, found="no warehouse is set", advice=advice)
        return
    probe = f"{opened.warehouse}/frazil-doctor-{uuid.uuid4()}"
    try:
        storage = opened._pointers.storage(probe)
        storage.write_new(probe, b"frazil")
        storage.read(probe)
        storage.delete(probe)
    except FrazilError as error:
        advice = "check permissions, credentials and endpoint"
        yield Finding(what="storage", state=FAILED, found=str(error), advice=advice)
        return
    yield Finding(what="storage", state=OK, found=f"{opened.warehouse} can be written and read")
