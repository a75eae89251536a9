"""Tables and catalogs as users see them: thin facades, loaded on first use."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from frazil.commit.result import CommitResult
    from frazil.rows.scan import Scan
    from frazil.table.catalog import Catalog, connect
    from frazil.table.table import Table
    from frazil.table.transaction import Transaction

_HOMES = {
    "Catalog": "frazil.table.catalog",
    "CommitResult": "frazil.commit.result",
    "Scan": "frazil.rows.scan",
    "Table": "frazil.table.table",
    "Transaction": "frazil.table.transaction",
    "connect": "frazil.table.catalog",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'frazil.table' has no attribute {name!r}")
    return getattr(import_module(_HOMES[name]), name)


__all__ = ["Catalog", "CommitResult", "Scan", "Table", "Transaction", "connect"]
