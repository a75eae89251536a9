"""Tables and catalogs as users see them: thin facades, loaded on first use."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from frazil.commit.result import CommitResult
    from frazil.rows.scan import Scan
    from frazil.table.catalog import Catalog
    from frazil.table.open_catalog import connect
    from frazil.table.table import Table
    from frazil.table.transaction import Transaction


def __getattr__(name: str) -> Any:
    if name == "Catalog":
        from frazil.table.catalog import Catalog

        return Catalog
    if name == "connect":
        from frazil.table.open_catalog import connect

        return connect
    if name == "Table":
        from frazil.table.table import Table

        return Table
    if name == "Transaction":
        from frazil.table.transaction import Transaction

        return Transaction
    if name == "Scan":
        from frazil.rows.scan import Scan

        return Scan
    if name == "CommitResult":
        from frazil.commit.result import CommitResult

        return CommitResult
    raise AttributeError(f"module 'frazil.table' has no attribute {name!r}")


__all__ = ["Catalog", "CommitResult", "Scan", "Table", "Transaction", "connect"]
