"""Tables and catalogs as users see them: thin facades over the layers below."""

from frazil.commit.result import CommitResult
from frazil.rows.scan import Scan
from frazil.table.catalog import Catalog, connect
from frazil.table.table import Table
from frazil.table.transaction import Transaction

__all__ = ["Catalog", "CommitResult", "Scan", "Table", "Transaction", "connect"]
