"""Which files of a Paimon snapshot a scan reads: plain ones as they are, others to be merged.

Plain files are pruned by partition, by Paimon's own statistics and by file indexes. Of files whose
rows are merged only partition and keys may rule one out: another column of a row may have a newer
value elsewhere.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from frazil import arrow_compute as pc
from frazil.errors import FormatError, Unsupported
from frazil.filter.prune.prune import PruneContext, might_match
from frazil.filter.text.filter_display import filter_text
from frazil.format.entries.batch import EntryBatch
from frazil.iceberg.expressions import AlwaysTrue, BooleanExpression
from frazil.iceberg.name_mapping import NameMapping
from frazil.iceberg.partitioning import PartitionSpec
from frazil.iceberg.schema import Schema
from frazil.paimon.adoption.takeover import SPEC_ID, Takeover, entries, prepare, taken_vectors
from frazil.paimon.read import as_iceberg
from frazil.paimon.read.data_types import DataType
from frazil.paimon.read.paimon_table import PaimonState, PaimonTable
from frazil.paimon.read.table_schema import MergeEngine, TableSchema
from frazil.paimon.scan import file_index
from frazil.paimon.scan.keyed_rows import KeyedFile, MergeRules, merge_rules
from frazil.scan.tasks import slices_of
from frazil.text_format import counted
from frazil.threads import in_threads
from frazil.value_classes import frozen, replace

Mask = npt.NDArray[np.bool_]
_THREADS: Final = 8


@frozen
class PaimonReport:
    """What planning a scan considered and ruled out, in files."""

    snapshot_id: int
    filter: str
    considered: int
    pruned_by_statistics: int
    pruned_by_index: int
    files: int
    merged_files: int
    rows: int

    def __str__(self) -> str:
        pruned = (
            f"{self.pruned_by_statistics} by statistics, {self.pruned_by_index} by file indexes"
        )
        return (
            f"snapshot {self.snapshot_id}, filter {self.filter}: {counted(self.files, 'file')} of "
            f"{self.considered} to read ({self.merged_files} to merge), "
            f"{counted(self.rows, 'row')}; "
            f"pruned {pruned}"
        )


@frozen(eq=False)
class PaimonPlan:
    """The files of a scan."""

    takeover: Takeover
    plain: tuple[KeyedFile, ...]
    groups: tuple[tuple[KeyedFile, ...], ...]
    """Files whose rows are merged with each other: those of one bucket."""
    rules: MergeRules | None
    report: PaimonReport
    specs: Mapping[int, PartitionSpec]
    mapping: NameMapping


def schema_of(table: PaimonTable, state: PaimonState) -> Schema:
    """The columns of a snapshot; refuses, by name, types that cannot be read."""
    earlier = [table.schema(i) for i in table.schema_ids() if i < state.schema.id]
    return as_iceberg.iceberg_schema(state.schema, earlier=earlier)


def plan(
    table: PaimonTable, state: PaimonState, schema: Schema, where: BooleanExpression
) -> PaimonPlan:
    """The files that may hold a matching row."""
    takeover = prepare(table, state, engines=tuple(MergeEngine))
    if takeover.problems:
        raise Unsupported(
            f"{table.location}: {'; '.join(takeover.problems)}", feature="paimon-read"
        )
    spec = as_iceberg.partition_spec(state.schema)
    context = PruneContext(schema=schema, specs={SPEC_ID: spec})
    vectors = taken_vectors(table, takeover)
    unmerged = entries(takeover, location=table.location, vectors=vectors)
    mask = _might_match(where, unmerged, context)
    surviving = mask & ~_ruled_out(table, state, takeover, mask, where)
    merged = _merged_entries(takeover, table.location)
    merge_mask = _might_match(where, merged, context)
    files = tuple(
        KeyedFile(source=source, dropped=vectors.get(source.path))
        for source in slices_of(unmerged.filter(surviving), table.location)
    )
    groups = _groups(table, state, takeover, merged, merge_mask)
    chosen = sum(len(group) for group in groups)
    report = PaimonReport(
        snapshot_id=state.snapshot.id,
        filter=filter_text(where),
        considered=unmerged.num_rows + merged.num_rows,
        pruned_by_statistics=int((~mask).sum() + (~merge_mask).sum()),
        pruned_by_index=int((mask & ~surviving).sum()),
        files=len(files) + chosen,
        merged_files=chosen,
        rows=sum(_left(file) for file in files)
        + sum(_left(file) for group in groups for file in group),
    )
    return PaimonPlan(
        takeover=takeover,
        plain=files,
        groups=groups,
        rules=merge_rules(state.schema) if groups else None,
        report=report,
        specs={SPEC_ID: spec},
        mapping=as_iceberg.name_mapping(state.schema, state.schemas.values()),
    )


def _left(file: KeyedFile) -> int:
    return file.source.record_count - (0 if file.dropped is None else len(file.dropped))


def _might_match(where: BooleanExpression, batch: EntryBatch, context: PruneContext) -> Mask:
    if isinstance(where, AlwaysTrue) or not batch.num_rows:
        return np.ones(batch.num_rows, dtype=np.bool_)
    return np.asarray(might_match(where, batch, context), dtype=np.bool_)


def _merged_entries(takeover: Takeover, location: str) -> EntryBatch:
    """Entries of the files to merge, with the statistics of keys and partitions alone."""
    state = takeover.state
    keys = list(state.schema.trimmed_primary_keys)
    files = state.files
    names = pa.array([keys] * files.num_rows, pa.list_(pa.string()))
    for paimon_name, key in (
        ("value_min", "key_min"),
        ("value_max", "key_max"),
        ("value_null_counts", "key_null_counts"),
    ):
        files = files.set_column(files.schema.get_field_index(paimon_name), paimon_name, files[key])
    index = files.schema.get_field_index("value_stats_cols")
    files = files.set_column(index, "value_stats_cols", pa.chunked_array([names]))
    assert takeover.schema is not None
    key_columns = {*state.schema.primary_keys, *state.schema.partition_keys}
    only_merged = replace(
        takeover,
        state=replace(state, files=files),
        classified=takeover.classified.as_taken(),
        schema=Schema(*(field for field in takeover.schema.fields if field.name in key_columns)),
    )
    return entries(only_merged, location=location, vectors={})


def _groups(
    table: PaimonTable,
    state: PaimonState,
    takeover: Takeover,
    merged: EntryBatch,
    mask: Mask,
) -> tuple[tuple[KeyedFile, ...], ...]:
    rows = state.files.filter(pa.array(takeover.merged))
    by_name = table.deletion_vectors(state) if merged.num_rows else {}
    groups: dict[tuple[bytes, int], list[KeyedFile]] = {}
    for source, keep, partition, bucket, name in zip(
        slices_of(merged, table.location),
        mask.tolist(),
        rows["partition"].to_pylist(),
        rows["bucket"].to_pylist(),
        rows["file_name"].to_pylist(),
        strict=True,
    ):
        if keep:
            file = KeyedFile(source=source, dropped=by_name.get(name))
            groups.setdefault((partition, bucket), []).append(file)
    return tuple(tuple(group) for group in groups.values())


def _ruled_out(
    table: PaimonTable,
    state: PaimonState,
    takeover: Takeover,
    mask: Mask,
    where: BooleanExpression,
) -> Mask:
    """Of the plain files that statistics leave, those that a file index rules out."""
    out = np.zeros(len(mask), dtype=np.bool_)
    if isinstance(where, AlwaysTrue):
        return out
    files = state.files.filter(pa.array(takeover.taken))
    has_index = pc.is_valid(files["embedded_file_index"]).to_numpy(zero_copy_only=False)
    extra = pc.fill_null(pc.list_value_length(files["extra_files"]), 0).to_numpy() > 0
    rows = np.flatnonzero(mask & (has_index | extra))
    locations = takeover.locations
    columns = {
        schema_id: _columns(version, state.schema) for schema_id, version in state.schemas.items()
    }

    def is_out(row: int) -> bool:
        data = files["embedded_file_index"][row].as_py()
        path: str = locations[row].as_py()
        if data is None:
            names = [name for name in files["extra_files"][row].as_py() if name.endswith(".index")]
            if not names:
                return False
            path = f"{path.rpartition('/')[0]}/{names[0]}"
            data = table.storage.read(path)
        try:
            index = file_index.read_index(data)
            return file_index.rules_out(index, where, columns[files["schema_id"][row].as_py()])
        except FormatError as error:
            raise error.at(path) from None

    for row, hit in zip(rows, in_threads(rows.tolist(), is_out, threads=_THREADS), strict=True):
        out[row] = hit
    return out


def _columns(version: TableSchema, current: TableSchema) -> dict[int, tuple[str, DataType]]:
    """Columns of a file's schema whose type is still the same, by field id."""
    types = {field.id: field.type for field in current.fields}
    return {
        field.id: (field.name, field.type)
        for field in version.fields
        if field.id in types
        and (types[field.id].name, types[field.id].precision)
        == (field.type.name, field.type.precision)
    }
