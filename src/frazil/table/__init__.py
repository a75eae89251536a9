"""Tables and catalogs as users see them: facades that combine the layers below and hold no
rules."""

from frazil.commit.result import CommitResult
from frazil.rows.scan import Scan
from frazil.table.catalog import Catalog, connect
from frazil.table.table import Table
from frazil.table.transaction import Transaction

__all__ = ["Catalog", "CommitResult", "Scan", "Table", "Transaction", "connect"]
