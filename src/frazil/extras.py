"""Packages that only some calls need, and their import. A missing one is named, with how to install
it."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from typing import Any, Final

from frazil.errors import Unsupported

EXTRAS: Final = {
    "pandas": "frames",
    "polars": "frames",
    "pyspark": "spark",
    "psycopg": "postgres",
    "starlette": "serve",
    "uvicorn": "serve",
    "httptools": "serve",
    "msgspec": "serve",
    "uvloop": "serve",
    "joserfc": "serve",
    "pyiceberg_core": "demo",
    "sqlglot": "views",
    "shapely": "shapes",
    "obstore": "objects",
}
"""Packages, and the extra of this one that installs them."""


@contextmanager
def many_imports() -> Iterator[None]:
    """Import hundreds of modules in the block. Python looks for garbage each time that they have
    made some hundred objects, all of which stay: a tenth of a first query's time."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


def needed(package: str, what: str) -> Any:
    """A package, imported; Unsupported, in one line, when it is not installed."""
    if find_spec(package) is None:
        raise missing(package, what)
    return import_module(package)


def find_spec(package: str) -> object | None:
    """Where a package is; None when it is not installed."""
    from importlib import util  # which only errors and options need

    return util.find_spec(package)


def missing(package: str, what: str) -> Unsupported:
    """The error for a package that is not installed."""
    extra = EXTRAS.get(package.partition(".")[0])
    how = f"pip install 'frazil[{extra}]'" if extra else f"pip install {package}"
    return Unsupported(f"{what} needs {package}, which is not installed: {how}", feature=package)
