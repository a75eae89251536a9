"""Rows of Paimon's primary-key files merged by a Spark job, for files that cannot be read as they
are.

Does what Paimon's full compaction does for merge engines `deduplicate` (the newest row of a key
wins, and a deleting one takes it away) and `first-row` (the oldest wins). Only the files that need
it are read; executors write the merged rows as data files of the new table, with field ids and
statistics.
The session comes from the caller: nothing here starts or stops Spark.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa

from frazil.data.schema import arrow_schema
from frazil.data.write.row_input import conformed
from frazil.data.write.write_files import write_rows
from frazil.errors import Unsupported
from frazil.format import paths
from frazil.format.entries.batch import EntryBatch
from frazil.format.metadata.metadata import TableMetadata
from frazil.iceberg.partitioning import PartitionSpec
from frazil.iceberg.schema import Schema
from frazil.paimon.adoption.takeover import MergeFiles, Takeover
from frazil.paimon.read.table_schema import MergeEngine, TableSchema
from frazil.storage import Storage, is_local, local_path
from frazil.value_classes import frozen

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession

_SEQUENCE: Final = "_SEQUENCE_NUMBER"
_KIND: Final = "_VALUE_KIND"
_RANK: Final = "_frazil_rank"
_ENTRIES: Final = "entries"
_INSERT_KINDS: Final = (0, 2)


def merge_paimon(spark: SparkSession) -> MergeFiles:
    """What `Catalog.adopt_paimon` takes as `merge`, to merge files with this session.

    >>> merge = merge_paimon(spark)                                       # doctest: +SKIP
    >>> catalog.adopt_paimon("shop.orders", source, merge=merge)          # doctest: +SKIP
    """
    return partial(_merge, spark)


def _merge(
    spark: SparkSession,
    takeover: Takeover,
    storage: Storage,
    metadata: TableMetadata,
    written: list[str],
) -> EntryBatch:
    """Merge the files that need it; entries of the data files that hold the outcome."""
    schema = takeover.schema
    assert schema is not None
    version = takeover.state.schema
    rows = _newest(_rows(spark, takeover, schema), version)
    rows = rows.select(*[field.name for field in schema.fields])
    if version.partition_keys:
        rows = rows.repartition(*version.partition_keys)
        rows = rows.sortWithinPartitions(*version.partition_keys)
    job = _WriteJob(
        storage=storage,
        location=metadata.location,
        schema=schema,
        spec=metadata.spec(),
        properties=dict(metadata.properties),
    )
    parts = rows.mapInArrow(job, f"{_ENTRIES} binary").collect()
    batches = [EntryBatch(pa.ipc.open_stream(part[_ENTRIES]).read_all()) for part in parts]
    entries = EntryBatch.concat(batches) if batches else EntryBatch.empty()
    written += [paths.resolve(metadata.location, path) for path in entries.pylist("location")]
    return entries


def _rows(spark: SparkSession, takeover: Takeover, schema: Schema) -> DataFrame:
    """All rows of the files, in the columns of the schema and two of Paimon's own."""
    state = takeover.state
    files = state.files.filter(pa.array(takeover.merged))
    groups: dict[tuple[int, str], list[str]] = {}
    for schema_id, path in zip(
        files["schema_id"].to_pylist(), takeover.merged_locations.to_pylist(), strict=True
    ):
        groups.setdefault((schema_id, path.rsplit(".", 1)[-1]), []).append(path)
    merged: DataFrame | None = None
    for (schema_id, format), group in sorted(groups.items()):
        frame = spark.read.format(format).load([_for_spark(path) for path in group])
        part = frame.select(*_columns(state.schemas[schema_id], schema))
        merged = part if merged is None else merged.unionByName(part)
    assert merged is not None
    return merged


def _for_spark(path: str) -> str:
    """A path as Hadoop takes it literally: glob characters escaped."""
    address = local_path(path) if is_local(path) else path
    escaped = "".join(f"\\{char}" if char in "*?[]{}" else char for char in address)
    return f"file://{escaped}" if is_local(path) else escaped


def _columns(version: TableSchema, schema: Schema) -> Iterator[Column]:
    """The columns of a file's version under the present names and types; absent ones are null."""
    from pyspark.sql import functions as f
    from pyspark.sql.pandas.types import from_arrow_schema

    present = {field.id: field.name for field in version.fields}
    types = {field.name: field.dataType for field in from_arrow_schema(arrow_schema(schema)).fields}
    for field in schema.fields:
        name = present.get(field.field_id)
        source = f.lit(None) if name is None else f.col(_quoted(name))
        yield source.cast(types[field.name]).alias(field.name)
    yield f.col(_SEQUENCE)
    yield f.col(_KIND)


def _quoted(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"


def _newest(rows: DataFrame, version: TableSchema) -> DataFrame:
    """One row per key: the one its merge engine keeps, unless that one deletes."""
    from pyspark.sql import Window
    from pyspark.sql import functions as f

    engine = version.merge_engine
    if engine not in (MergeEngine.DEDUPLICATE, MergeEngine.FIRST_ROW):
        raise Unsupported(
            f"merge engine {engine.value}: compact the table in Paimon", feature="paimon-merge"
        )
    inserts = f.col(_KIND).isin(*_INSERT_KINDS)
    if engine is MergeEngine.FIRST_ROW or _ignores_deletes(version):
        rows = rows.filter(inserts)
    order = list(_order(version))
    keys = [f.col(_quoted(name)) for name in version.primary_keys]
    ranked = rows.withColumn(_RANK, f.row_number().over(Window.partitionBy(*keys).orderBy(*order)))
    return ranked.filter((f.col(_RANK) == 1) & inserts)


def _ignores_deletes(version: TableSchema) -> bool:
    names = ("ignore-delete", "deduplicate.ignore-delete", "first-row.ignore-delete")
    return any(version.is_enabled(name) for name in names)


def _order(version: TableSchema) -> Iterable[Column]:
    """Which of the rows of a key comes first."""
    from pyspark.sql import functions as f

    if version.merge_engine is MergeEngine.FIRST_ROW:
        yield f.col(_SEQUENCE).asc()
        return
    ascending = version.options.get("sequence.field.sort-order", "ascending") == "ascending"
    names = [name.strip() for name in version.options.get("sequence.field", "").split(",")]
    for name in filter(None, names):
        column = f.col(_quoted(name))
        yield column.desc_nulls_last() if ascending else column.asc_nulls_last()
    yield f.col(_SEQUENCE).desc()


@frozen
class _WriteJob:
    """What an executor does with its rows: data files, and the entries that describe them."""

    storage: Storage
    location: str
    schema: Schema
    spec: PartitionSpec
    properties: dict[str, str]

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        entries = write_rows(
            _conformed(batches, self.schema),
            storage=self.storage,
            location=self.location,
            schema=self.schema,
            spec=self.spec,
            write_id=uuid.uuid4(),
            properties=self.properties,
        )
        if entries.num_rows:
            yield pa.record_batch({_ENTRIES: [_packed(entries.table)]})


def _conformed(batches: Iterator[pa.RecordBatch], schema: Schema) -> Iterator[pa.RecordBatch]:
    target = arrow_schema(schema)
    for batch in batches:
        columns: Sequence[Any] = [
            batch.column(batch.schema.get_field_index(field.name)).cast(field.type)
            for field in target
        ]
        yield from conformed(pa.Table.from_arrays(columns, schema=target), schema)


def _packed(table: pa.Table) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as stream:
        stream.write_table(table)
    return bytes(sink.getvalue())
