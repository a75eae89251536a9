"""Filters: from text or PyIceberg expressions to masks over manifest entries and rows.

The package can be called: `frazil.expr("price * 1.1")` makes an SQL expression.
"""

from __future__ import annotations

import importlib
import sys
from types import ModuleType
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from frazil.expr.parse import parse
    from frazil.expr.partition_by import parse_partition_by
    from frazil.expr.prune import (
        Derived,
        Filter,
        PruneContext,
        PruneResult,
        compile_filter,
        might_match,
        must_match,
        prune,
        required_keys,
        residual_needed,
    )
    from frazil.expr.row_filter import columns_of, pushdown, row_mask, to_arrow
    from frazil.expr.sql_text import Expression
    from frazil.expr.transforms import result_type, transform_array

_PLACES: Final = {
    "Derived": "prune",
    "Expression": "sql_text",
    "Filter": "prune",
    "PruneContext": "prune",
    "PruneResult": "prune",
    "columns_of": "row_filter",
    "compile_filter": "prune",
    "might_match": "prune",
    "must_match": "prune",
    "parse": "parse",
    "parse_partition_by": "partition_by",
    "prune": "prune",
    "pushdown": "row_filter",
    "required_keys": "prune",
    "residual_needed": "prune",
    "result_type": "transforms",
    "row_mask": "row_filter",
    "to_arrow": "row_filter",
    "transform_array": "transforms",
}
"""The module of every name. They are loaded when first used: a process that reads rows without a
filter needs no parser."""


class _Package(ModuleType):
    """Some functions have the names of their modules; the name is the function's."""

    def __call__(self, text: str, *params: Any) -> Expression:
        """SQL that stands for a value, with `?` for the params."""
        from frazil.expr.sql_text import Expression

        return Expression(text=text, params=params)

    def __setattr__(self, name: str, value: Any) -> None:
        if not (isinstance(value, ModuleType) and name in _PLACES):
            super().__setattr__(name, value)


def __getattr__(name: str) -> Any:
    """A name that is used for the first time."""
    place = _PLACES.get(name)
    if place is None:
        raise AttributeError(f"module 'frazil.expr' has no attribute {name!r}")
    found = globals()[name] = getattr(importlib.import_module(f"{__name__}.{place}"), name)
    return found


sys.modules[__name__].__class__ = _Package

__all__ = [
    "Derived",
    "Expression",
    "Filter",
    "PruneContext",
    "PruneResult",
    "columns_of",
    "compile_filter",
    "might_match",
    "must_match",
    "parse",
    "parse_partition_by",
    "prune",
    "pushdown",
    "required_keys",
    "residual_needed",
    "result_type",
    "row_mask",
    "to_arrow",
    "transform_array",
]
