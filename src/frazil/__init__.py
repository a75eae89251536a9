"""Frazil: tables with an adaptive metadata tree, on Python and Spark.

>>> import frazil
>>> catalog = frazil.connect("warehouse")                                 # doctest: +SKIP
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from frazil.errors import (
    AlreadyExists,
    CatalogError,
    CommitConflict,
    CommitUnknown,
    FormatError,
    FrazilError,
    InvalidInput,
    NotFound,
    StorageError,
    Unsupported,
)

if TYPE_CHECKING:
    from frazil.expr.sql_text import Expression
    from frazil.table import Catalog, CommitResult, Scan, Table, Transaction, connect

__version__ = "0.2.0"

__all__ = [
    "AlreadyExists",
    "Catalog",
    "CatalogError",
    "CommitConflict",
    "CommitResult",
    "CommitUnknown",
    "FormatError",
    "FrazilError",
    "InvalidInput",
    "NotFound",
    "Scan",
    "StorageError",
    "Table",
    "Transaction",
    "Unsupported",
    "connect",
    "expr",
]

if TYPE_CHECKING:

    def expr(text: str, *params: Any) -> Expression:
        """An SQL expression for `update` and `merge`, with `?` for the params.

        >>> orders.update({"price": frazil.expr("price * ?", 1.1)})      # doctest: +SKIP
        """


_FACADE = frozenset({"Catalog", "CommitResult", "Scan", "Table", "Transaction", "connect"})


def __dir__() -> list[str]:
    """What there is to use, loaded or not."""
    return sorted({"__version__", *__all__})


def __getattr__(name: str) -> Any:
    """The facade is loaded when first used, so that `import frazil` is quick."""
    if name == "expr":  # the package of expressions, which makes one when it is called
        return importlib.import_module("frazil.expr")
    if name in _FACADE:
        import frazil.table

        return getattr(frazil.table, name)
    raise AttributeError(f"module 'frazil' has no attribute {name!r}")
