"""Frazil: tables with an adaptive metadata tree, on Python and Spark.

>>> import frazil
>>> catalog = frazil.connect("warehouse")                                 # doctest: +SKIP
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from frazil.errors import (
    AlreadyExists,
    Cancelled,
    CatalogError,
    CommitConflict,
    CommitUnknown,
    FormatError,
    FrazilError,
    InvalidInput,
    NotFound,
    Overloaded,
    StorageError,
    Unsupported,
)

if TYPE_CHECKING:
    from pyiceberg.table import StaticTable

    from frazil.filter.text.sql_text import Expression
    from frazil.iceberg.pyiceberg_classes import VariantType
    from frazil.maintenance.progress import progress_bar
    from frazil.paimon import open_paimon
    from frazil.table import Catalog, CommitResult, Scan, Table, Transaction, connect

__version__ = "0.3.0"

__all__ = [
    "AlreadyExists",
    "Cancelled",
    "Catalog",
    "CatalogError",
    "CommitConflict",
    "CommitResult",
    "CommitUnknown",
    "FormatError",
    "FrazilError",
    "InvalidInput",
    "NotFound",
    "Overloaded",
    "Scan",
    "StorageError",
    "Table",
    "Transaction",
    "Unsupported",
    "VariantType",
    "connect",
    "expr",
    "open_paimon",
    "progress_bar",
    "to_pyiceberg",
]


def expr(text: str, *params: Any) -> Expression:
    """An SQL expression for `update` and `merge`, with `?` for the params.

    >>> orders.update({"price": frazil.expr("price * ?", 1.1)})      # doctest: +SKIP
    """
    from frazil.filter.text.sql_text import Expression

    return Expression(text=text, params=params)


def to_pyiceberg(table: Table, *, format_version: int = 3, **properties: str) -> StaticTable:
    """A table as PyIceberg's `StaticTable`, for libraries that take one: as it is now, read-only.
    `properties` are PyIceberg's, for example where an object store is.

    >>> frazil.to_pyiceberg(orders).scan("id = 7").to_arrow()        # doctest: +SKIP
    """
    from frazil.serve import need_installed
    from frazil.table import Table
    from frazil.table.catalog import check_published_version

    if not isinstance(table, Table):
        raise InvalidInput(f"expected a table of a catalog, not {type(table).__name__}")
    check_published_version(format_version)
    need_installed()
    from frazil.serve.pyiceberg_objects import static_table

    return static_table(table, format_version, properties)


_FACADE = frozenset({"Catalog", "CommitResult", "Scan", "Table", "Transaction", "connect"})


def __dir__() -> list[str]:
    """What there is to use, loaded or not."""
    return sorted({"__version__", *__all__})


def __getattr__(name: str) -> Any:
    """The facade is loaded when first used, so that `import frazil` is quick."""
    if name in _FACADE:
        import frazil.table

        return getattr(frazil.table, name)
    if name == "open_paimon":
        from frazil.paimon import open_paimon

        return open_paimon
    if name == "progress_bar":
        from frazil.maintenance.progress import progress_bar

        return progress_bar
    if name == "VariantType":
        from frazil.iceberg.pyiceberg_classes import VariantType

        return VariantType
    raise AttributeError(f"module 'frazil' has no attribute {name!r}")
