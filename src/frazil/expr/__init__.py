"""Filters: from text or PyIceberg expressions to masks over manifest entries and rows."""

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
from frazil.expr.transforms import result_type, transform_array

__all__ = [
    "Derived",
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
