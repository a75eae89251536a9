"""Apache Paimon tables: read, inspected and taken over in place."""

from frazil.paimon.adopt import Adopted, PassedOver, TakenSnapshot, adopt
from frazil.paimon.report import Report, dry_run
from frazil.paimon.table import PaimonTable

__all__ = [
    "Adopted",
    "PaimonTable",
    "PassedOver",
    "Report",
    "TakenSnapshot",
    "adopt",
    "dry_run",
]
