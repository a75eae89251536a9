"""Apache Paimon tables: read, inspected and adopted in place."""

from frazil.paimon.adoption.adopt import Adopted, PassedOver, adopt
from frazil.paimon.adoption.apply import TakenSnapshot
from frazil.paimon.adoption.takeover_report import Report, dry_run
from frazil.paimon.read.paimon_table import PaimonTable
from frazil.paimon.scan.paimon_source import PaimonSource, open_paimon

__all__ = [
    "Adopted",
    "PaimonSource",
    "PaimonTable",
    "PassedOver",
    "Report",
    "TakenSnapshot",
    "adopt",
    "dry_run",
    "open_paimon",
]
