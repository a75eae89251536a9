"""The partition spec and the sort order of a table that has none."""

from __future__ import annotations

from pyiceberg.partitioning import PartitionSpec
from pyiceberg.table.sorting import SortOrder

UNSORTED = SortOrder(order_id=0)
UNPARTITIONED = PartitionSpec(spec_id=0)

__all__ = ["UNPARTITIONED", "UNSORTED"]
