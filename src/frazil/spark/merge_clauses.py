"""The clauses of a merge: which rows, on what condition, what happens to them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Any

from frazil.spark.row_level import Action
from frazil.spark.target import Condition


class Side(Enum):
    """Which rows a clause is for."""

    MATCHED = "matched"
    SOURCE_ONLY = "not matched"
    TARGET_ONLY = "not matched by source"


@dataclass(frozen=True, slots=True, kw_only=True)
class Clause:
    """What to do with some rows. `values` None takes every column from the source by name."""

    side: Side
    action: Action
    condition: Condition | None = None
    values: Mapping[str, Any] | None = None
