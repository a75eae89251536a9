"""Apache Paimon tables: read, inspected and adopted in place."""

from frazil.paimon.adopt import Adopted, PassedOver, TakenSnapshot, adopt
from frazil.paimon.paimon_table import PaimonTable
from frazil.paimon.takeover_report import Report, dry_run

__all__ = [
    "Adopted",
    "PaimonTable",
    "PassedOver",
    "Report",
    "TakenSnapshot",
    "adopt",
    "dry_run",
]
