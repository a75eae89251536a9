"""Constraints in table metadata, as the draft of version 4 has them.

They are kept and written back, never validated. Rows cannot be added past one that is enforced:
the draft requires writers to verify them.
"""

from __future__ import annotations

from frazil.errors import Unsupported
from frazil.format.metadata import TableMetadata

CONSTRAINTS = "constraints"


def check_rows_can_be_added(metadata: TableMetadata) -> None:
    """Refuse when the table has a constraint that every new row has to be checked against."""
    found = metadata.extra.get(CONSTRAINTS)
    for constraint in found if isinstance(found, list) else ():
        if isinstance(constraint, dict) and constraint.get("enforced") is True:
            name = constraint.get("name", constraint.get("constraint-id"))
            raise Unsupported(
                f"{metadata.location}: constraint {name} is enforced, and this version cannot "
                "verify that new rows satisfy it; add them with an engine that can, or drop the "
                "constraint",
                feature="enforced constraints",
            )
