"""Values in a database that cannot be used: found, and replaced by what is read in their place.

A table loads without them (`metadata_json` leaves them out), so they do no harm; a repair stores
what every load makes of them. Versions stay as they are: nothing that anyone reads changes.
"""

from __future__ import annotations

from frazil.catalog.database.database import Database, DatabaseTransaction, UncertainCommit
from frazil.catalog.sql import sql_rows
from frazil.catalog.sql.sql_rows import Definition, TableRow
from frazil.errors import CommitUnknown, FormatError, NotFound
from frazil.format.metadata import metadata_json

_SET_REFS = "UPDATE frazil_tables SET refs = :refs WHERE table_id = :table_id"
_SET_RECORD = """
UPDATE frazil_snapshots SET record = :record
WHERE table_id = :table_id AND snapshot_id = :snapshot_id
"""


def stored_problems(
    database: Database, table_id: int, *, path: str, repair: bool
) -> tuple[FormatError, ...]:
    """What cannot be used of a table's rows; with `repair` it is replaced."""
    try:
        with database.transaction(write=repair) as transaction:
            return tuple(_problems(transaction, table_id, path, repair=repair))
    except UncertainCommit as lost:
        raise CommitUnknown(
            f"{path}: the connection was lost while it was repaired; check it again"
        ) from lost


def _problems(
    transaction: DatabaseTransaction, table_id: int, path: str, *, repair: bool
) -> list[FormatError]:
    key = {"table_id": table_id}
    rows = transaction.rows(sql_rows.LOAD_BY_ID, {**key, "known": ""})
    if not rows:
        raise NotFound(f"{path}: the table was dropped")
    row = TableRow.of(rows[0])
    problems: list[FormatError] = []

    rejected: list[FormatError] = []
    definition = metadata_json.load_definition(row.definition or "", path=path, rejected=rejected)
    if rejected and repair:
        sql_rows.define(transaction, table_id, Definition.of(definition))
    problems += rejected

    rejected = []
    refs = metadata_json.load_refs(row.refs, path=path, rejected=rejected)
    if rejected and repair:
        transaction.run(_SET_REFS, {**key, "refs": metadata_json.refs_text(refs)})
    problems += rejected

    for snapshot_id, record in transaction.rows(sql_rows.SNAPSHOTS, key):
        rejected = []
        where = f"{path}, snapshot {snapshot_id}"
        snapshot = sql_rows.snapshot_of(record, path=where, rejected=rejected)
        if rejected and repair:
            text = metadata_json.snapshot_text(snapshot)
            transaction.run(_SET_RECORD, {**key, "snapshot_id": snapshot_id, "record": text})
        problems += rejected
    return problems
