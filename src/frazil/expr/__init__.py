"""Filters: from text or PyIceberg expressions to masks over manifest entries and rows.

The package can be called: `frazil.expr("price * 1.1")` makes an SQL expression.
"""

import sys
from types import ModuleType
from typing import Any

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


class _Package(ModuleType):
    def __call__(self, text: str, *params: Any) -> Expression:
        """SQL that stands for a value, with `?` for the params."""
        return Expression(text=text, params=params)


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
