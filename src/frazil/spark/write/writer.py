"""Rows of a frame written to data files by the tasks of a Spark job, and the commit that adds them.

The frame is checked against the table, clustered (`distribution`), and every task writes its rows
with the same writer as on one machine: field ids at all levels, Iceberg's physical types, exact
statistics. Tasks hand back entries; the driver commits once. A task that fails removes its files,
or leaves orphans that nothing refers to.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from pyspark.sql import types as sql

from frazil.commit.change import Change
from frazil.commit.loop import discard, undoing
from frazil.commit.result import CommitResult
from frazil.data.conform import Conformer
from frazil.data.metadata_columns import LINEAGE, with_columns
from frazil.format import paths
from frazil.format.entries.batch import EntryBatch
from frazil.format.metadata.metadata import TableMetadata
from frazil.iceberg.expressions import AlwaysTrue
from frazil.iceberg.schema import Schema
from frazil.properties.registry import OVERWRITE_ISOLATION
from frazil.spark.options.write_terms import WriteTerms
from frazil.spark.session.executor_tasks import answers
from frazil.spark.session.find_table import CatalogLike, prepare, table_of
from frazil.spark.session.packed_entries import unpacked
from frazil.spark.session.session_bridge import refresh_cache
from frazil.spark.types.spark_arrow import incoming
from frazil.spark.types.spark_types import frame_schema
from frazil.spark.write.distribution import Distribution, distributed
from frazil.spark.write.write_task import WriteTask
from frazil.table.table import Table
from frazil.tree.locate import ADDRESS

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def append(
    table: Table | str,
    frame: DataFrame,
    *,
    catalog: CatalogLike | None = None,
    summary: Mapping[str, str] | None = None,
    merge_schema: bool = False,
) -> CommitResult:
    """Add the rows of a frame; one snapshot.

    With `merge_schema`, columns that only the frame has are added to the table first.
    """
    target = table_of(frame.sparkSession, table, catalog)
    terms = WriteTerms(table=target, summary=dict(summary or {}))
    result = append_rows(terms, frame, merge_schema=merge_schema)
    refresh_cache(frame.sparkSession, target)
    return result


def append_rows(terms: WriteTerms, frame: DataFrame, *, merge_schema: bool = False) -> CommitResult:
    """The same on the terms of a statement."""
    if merge_schema:
        widened(terms.table, frame)
    entries = write_frame(frame, terms.table, metadata=terms.metadata)
    return commit_added(terms, entries, lambda: plain_change(terms.table, entries))


def replace_rows(terms: WriteTerms, frame: DataFrame) -> CommitResult:
    """Put the rows of a frame in the place of all rows; one snapshot."""
    entries = write_frame(frame, terms.table, metadata=terms.metadata)
    return commit_added(terms, entries, lambda: replacing_all(terms, entries))


def write_frame(
    frame: DataFrame,
    table: Table,
    *,
    with_lineage: bool = False,
    metadata: TableMetadata | None = None,
) -> EntryBatch:
    """Write the rows of a frame on executors and describe the files; commits nothing.

    With lineage, the frame has `_row_id` and `_last_updated_sequence_number` besides the table's
    columns, and files store them. A caller that does not commit the entries calls
    `discard_entries`.
    `metadata` is a definition that the table does not have yet.
    """
    metadata = metadata or table.metadata
    schema = metadata.schema()
    if with_lineage:
        schema = with_columns(schema, LINEAGE)
    spark = frame.sparkSession
    prepare(spark, (field.field_type for field in schema.fields))
    fitting = renamed(frame, schema)
    Conformer.between(incoming(fitting.schema, schema), schema)  # every problem, before any work
    arranged = distributed(
        fitting,
        schema=schema,
        spec=metadata.spec(),
        sort_order=metadata.sort_order(),
        mode=Distribution.of(metadata.properties, metadata.spec()),
    )
    task = WriteTask.of(metadata, schema, storage=table._handle.storage, location=table.location)
    return EntryBatch.concat([unpacked(answer) for answer in answers(arranged, task.run)])


def renamed(frame: DataFrame, schema: Schema) -> DataFrame:
    """The frame with the table's spelling of column names, where the session ignores case."""
    if frame.sparkSession.conf.get("spark.sql.caseSensitive", "false") == "true":
        return frame
    exact = {field.name for field in schema.fields}
    by_lower: dict[str, list[str]] = {}
    for name in exact:
        by_lower.setdefault(name.lower(), []).append(name)
    changes = {
        name: by_lower[name.lower()][0]
        for name in frame.columns
        if name not in exact and len(by_lower.get(name.lower(), ())) == 1
    }
    return frame.withColumnsRenamed(changes) if changes else frame


def widened(table: Table, frame: DataFrame) -> None:
    """Add the columns that only a frame has to a table, and widen types."""
    table.evolve_schema().union_by_name(frame_schema(frame.schema)).commit()
    table.refresh()


def commit_added(
    terms: WriteTerms, entries: EntryBatch, change: Callable[[], Change]
) -> CommitResult:
    """Land a change that adds written files; they go when it surely did not land."""
    with undoing(lambda: discard_entries(terms.table, entries)):
        planned = change()
        if not planned.has_content:
            return CommitResult.nothing("nothing to commit")
        return terms.table._handle.commit(terms.applied(planned))


def discard_entries(table: Table, entries: EntryBatch) -> None:
    """Remove files that were written and will not be committed."""
    if entries.num_rows:
        locations = paths.resolve_all(table.location, entries.column("location"))
        discard(table._handle.storage, locations.to_pylist())


def check_schema(schema: sql.StructType, table: Schema) -> None:
    """Refuse, listing every problem, rows that do not fit the table."""
    Conformer.between(incoming(schema, table), table)


def plain_change(table: Table, entries: EntryBatch) -> Change:
    """The change that adds the files."""
    tip = table.current_snapshot()
    base = None if tip is None else int(tip.snapshot_id)
    return Change(branch=table.branch_name, base_snapshot_id=base, added=entries)


def replacing_all(terms: WriteTerms, entries: EntryBatch) -> Change:
    """The change that adds the files and takes out every other."""
    scan = terms.scan()
    files = scan.plan().files
    removed = files.select(ADDRESS) if files.num_rows else None
    return terms.overwriting(
        scan, AlwaysTrue(), OVERWRITE_ISOLATION, added=entries, removed=removed
    )
