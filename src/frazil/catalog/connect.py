"""From what a user names to a catalog: a warehouse folder, or a database address."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping

from frazil.catalog.base import Catalog
from frazil.errors import InvalidInput

_DATABASE = re.compile(r"^(sqlite|postgres|postgresql)(\+[a-z0-9_]+)?:")
_SCHEME = re.compile(r"^[A-Za-z][A-Za-z0-9+.\-]+:")


def connect(
    target: str | os.PathLike[str],
    *,
    warehouse: str | None = None,
    name: str = "default",
    properties: Mapping[str, str] | None = None,
) -> Catalog:
    """Open a catalog, created if absent.

    `target` is a local folder (SQLite at `<folder>/catalog.db`, tables beside it), the address of a
    database (`sqlite:///…`, `postgresql://…`; tables go to `warehouse`), or `memory:`.
    """
    text = os.fspath(target)
    if not text:
        raise InvalidInput("expected a warehouse folder or a database address")
    if text == "memory:":
        from frazil.catalog.memory import MemoryCatalog

        return MemoryCatalog(name=name, warehouse=warehouse, properties=properties)
    from frazil.catalog.database import Database
    from frazil.catalog.sql import SqlCatalog

    if _DATABASE.match(text):
        return SqlCatalog(text, name=name, warehouse=warehouse, properties=properties)
    if text.startswith("file:"):
        text = "/" + text[len("file:") :].lstrip("/")
    elif _SCHEME.match(text):
        scheme = text.partition(":")[0]
        raise InvalidInput(
            f"{scheme}: is no database; give a database address and put this into warehouse="
        )
    folder = os.path.abspath(text)
    database = Database.at_path(f"{folder}/catalog.db")
    return SqlCatalog(database, name=name, warehouse=warehouse or folder, properties=properties)
