"""One Paimon snapshot made ready to be adopted: entries, deletion vectors, and what stands in
the way.

Puts together classification, checks of the files and conversion. Writes nothing: the outcome is a
value that a dry run shows and an adoption commits.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Final

import numpy as np
import pyarrow as pa

from frazil import arrow_compute as pc
from frazil.errors import Unsupported
from frazil.format import paths
from frazil.format.entries.batch import EntryBatch
from frazil.format.entries.fields import ContentType, partition_key
from frazil.format.entries.tracking import Status
from frazil.format.metadata.metadata import TableMetadata
from frazil.format.values.types import arrow_type, promote
from frazil.iceberg.name_mapping import NameMapping
from frazil.iceberg.schema import Schema
from frazil.paimon.adoption import classify, verify
from frazil.paimon.adoption.classify import Classified, FileClass, Verdict
from frazil.paimon.adoption.verify import Listing, Mask
from frazil.paimon.read import as_iceberg, binary_row, value_stats
from frazil.paimon.read.paimon_table import PaimonState, PaimonTable
from frazil.paimon.read.table_schema import MergeEngine
from frazil.paimon.read.vector_files import Positions
from frazil.storage import Storage
from frazil.value_classes import frozen

SPEC_ID: Final = 0
_OTHER_BRANCH: Final = ("scan.fallback-branch", "scan.primary-branch")


@frozen(eq=False)
class Takeover:
    """What taking over one snapshot means."""

    state: PaimonState
    classified: Classified
    schema: Schema | None
    """The Iceberg schema; None when some column's type stands in the way."""
    problems: tuple[str, ...]
    """Why it cannot be done, empty when it can (with a merge, where files need one)."""
    everywhere: pa.Array
    """Where each live file lies; checked for those taken or merged."""

    @property
    def taken(self) -> Mask:
        """Files adopted in place."""
        return self.classified.mask(Verdict.TAKEN)

    @property
    def merged(self) -> Mask:
        """Files whose rows must be merged first."""
        return self.classified.mask(Verdict.MERGED)

    @property
    def locations(self) -> pa.Array:
        """Where the taken files lie, in file order."""
        return self.everywhere.filter(pa.array(self.taken))

    @property
    def merged_locations(self) -> pa.Array:
        """Where the files lie that need a merge, in file order."""
        return self.everywhere.filter(pa.array(self.merged))

    @property
    def summary(self) -> pa.Table:
        """One row per class of files."""
        return classify.summary(self.state, self.classified)


MergeFiles = Callable[[Takeover, Storage, TableMetadata, list[str]], EntryBatch]
"""Merges the files of an adoption that need it into data files of the new table, and gives their
entries. Every path it writes goes into the list, for a caller that has to clean up."""


def prepare(
    table: PaimonTable,
    state: PaimonState,
    *,
    exclude: Collection[str] = (),
    listing: Listing | None = None,
    mapping: NameMapping | None = None,
    merging: bool = False,
    engines: Collection[MergeEngine] = classify.MERGED_HERE,
) -> Takeover:
    """Examine everything that decides whether and how a snapshot can be adopted.

    `listing` gives the files that are really there, and checks them; without it existence and
    sizes are not checked, except where a file cannot be found otherwise. `mapping` is the name
    mapping the table will have; that of this snapshot alone when none is given. `merging` and
    `engines` say which files can be merged, as in `classify`.
    """
    classified = classify.classify(state, exclude=exclude, merging=merging, engines=engines)
    problems = list(as_iceberg.unsupported_columns(state.schema, exclude).values())
    problems += _other_branches(table, state)
    schema = None
    if not problems:
        earlier = [table.schema(i) for i in table.schema_ids() if i < state.schema.id]
        schema = as_iceberg.iceberg_schema(state.schema, earlier=earlier, exclude=exclude)
    if listing is None and verify.inexact_partitions(state):
        listing = Listing(table)
    everywhere = state.files["location"].combine_chunks()
    if listing is not None:
        keep = classified.mask(Verdict.TAKEN) | classified.mask(Verdict.MERGED)
        everywhere = verify.located(table, state, keep, listing)
    if state.schema.has_primary_key:
        classified = _uncounted_deletes(table, state, classified, everywhere, engines)
    if not problems:
        if mapping is None:
            mapping = as_iceberg.name_mapping(state.schema, state.schemas.values(), exclude=exclude)
        classified = _bound_by_name(table, state, classified, everywhere, mapping)
    return Takeover(
        state=state,
        classified=classified,
        schema=schema,
        problems=(*problems, *_refusals(state, classified)),
        everywhere=everywhere,
    )


def _other_branches(table: PaimonTable, state: PaimonState) -> list[str]:
    """Options by which Paimon reads partitions of another branch too; the newest schema counts."""
    newest = table.schema(max(table.schema_ids(), default=state.schema.id))
    options = {**state.schema.options, **newest.options}
    return [
        f"option {key} is {options[key]!r}: Paimon reads partitions from that branch too, which an "
        "adoption of this branch alone would lose; copy them into this branch and reset the option"
        for key in _OTHER_BRANCH
        if options.get(key)
    ]


def _refusals(state: PaimonState, classified: Classified) -> list[str]:
    return [
        f"{line['files']} files ({line['example']}, …): {line['reason']}; {line['advice']}"
        for line in classify.summary(state, classified).to_pylist()
        if line["verdict"] == Verdict.REFUSED
    ]


def _uncounted_deletes(
    table: PaimonTable,
    state: PaimonState,
    classified: Classified,
    everywhere: pa.Array,
    engines: Collection[MergeEngine],
) -> Classified:
    """Some writers record no delete rows where there are some: look into level-0 files."""
    suspects = classified.mask(Verdict.TAKEN) & (state.files["level"].to_numpy() == 0)
    guilty = verify.with_delete_rows(
        table.storage, everywhere.filter(pa.array(suspects)).to_pylist()
    )
    reason = "holds delete rows that its entry does not count"
    mask = suspects & _among(everywhere, guilty)
    return classified.with_class(classify.needs_merge(state.schema, reason, engines), mask)


def _bound_by_name(
    table: PaimonTable,
    state: PaimonState,
    classified: Classified,
    everywhere: pa.Array,
    mapping: NameMapping,
) -> Classified:
    """Files without field ids that the name mapping would bind wrongly are refused."""
    ids = state.files["schema_id"].to_numpy()
    for schema_id, version in state.schemas.items():
        names = as_iceberg.misbound(version, state.schema, mapping)
        if not names:
            continue
        suspects = classified.mask(Verdict.TAKEN) & (ids == schema_id)
        lacking = verify.without_field_ids(
            table.storage, everywhere.filter(pa.array(suspects)).to_pylist()
        )
        problem = FileClass(
            verdict=Verdict.REFUSED,
            reason=(
                f"has no field ids, and in schema {schema_id} the name {', '.join(names)} meant "
                "another column"
            ),
            advice="compact the table in Paimon to rewrite these files",
        )
        classified = classified.with_class(problem, suspects & _among(everywhere, lacking))
    return classified


def _among(locations: pa.Array, chosen: Sequence[str]) -> Mask:
    hit = pc.is_in(locations, pa.array(chosen, pa.string()))
    return np.asarray(hit.to_numpy(zero_copy_only=False), bool)


def taken_vectors(table: PaimonTable, takeover: Takeover) -> Mapping[str, Positions]:
    """Deleted rows of the taken files, by location."""
    by_name = table.deletion_vectors(takeover.state)
    if not by_name:
        return {}
    names = takeover.state.files["file_name"].filter(pa.array(takeover.taken)).to_pylist()
    return {
        location: by_name[name]
        for name, location in zip(names, takeover.locations.to_pylist(), strict=True)
        if name in by_name
    }


def entries(
    takeover: Takeover,
    *,
    location: str,
    vectors: Mapping[str, Positions],
    only: Mask | None = None,
) -> EntryBatch:
    """Entries of the taken files for a table at `location`, without deletion vectors.

    `only` selects among the taken files. Row ids that Paimon assigned are kept.
    """
    if takeover.schema is None:
        raise Unsupported("; ".join(takeover.problems), feature="paimon")
    state = takeover.state
    files = state.files.filter(pa.array(takeover.taken))
    locations = takeover.locations
    if only is not None:
        files, locations = files.filter(pa.array(only)), locations.filter(pa.array(only))
    if files.num_rows == 0:
        return EntryBatch.empty()
    partitions = _partitions(state, files, takeover.schema)
    has_vector = pc.is_in(locations, pa.array(list(vectors), pa.string()))
    exact = ~has_vector.to_numpy(zero_copy_only=False)
    formats = pc.replace_substring_regex(files["file_name"], r"^.*\.", "")
    count = files.num_rows
    columns = {
        "tracking.status": pa.repeat(pa.scalar(int(Status.ADDED), pa.int32()), count),
        "content_type": pa.repeat(pa.scalar(int(ContentType.DATA), pa.int32()), count),
        "location": paths.relativise_all(location, pa.chunked_array([locations])),
        "file_format": formats,
        "record_count": files["row_count"],
        "file_size_in_bytes": files["file_size"],
    }
    if partitions:
        columns["spec_id"] = pa.repeat(pa.scalar(SPEC_ID, pa.int32()), count)
    if files["first_row_id"].null_count < count:
        columns["tracking.first_row_id"] = files["first_row_id"]
    ids = as_iceberg.partition_field_ids(state.schema)
    sources = [field.id for field in state.schema.partition_fields]
    for partition_id, values in zip(ids, partitions, strict=True):
        columns[partition_key(partition_id)] = values
    columns |= value_stats.content_stats(
        files,
        state.schemas,
        takeover.schema,
        constants=dict(zip(sources, partitions, strict=True)),
        exact=exact,
    )
    return EntryBatch(pa.table(columns).combine_chunks())


def _partitions(state: PaimonState, files: pa.Table, schema: Schema) -> list[pa.Array]:
    """Partition values of the files, in the types of the Iceberg schema."""
    fields = state.schema.partition_fields
    encoded = files["partition"].combine_chunks().dictionary_encode()
    decoded = binary_row.decode(encoded.dictionary, [field.type for field in fields])
    columns = []
    for field, values in zip(fields, decoded, strict=True):
        kind = schema.find_type(field.id)
        wide = values if values.type == arrow_type(kind) else promote(values, kind)
        columns.append(wide.take(encoded.indices))
    return columns
