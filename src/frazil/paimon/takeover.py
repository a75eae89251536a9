"""One Paimon snapshot made ready to be taken over: entries, deletion vectors, and what stands in
the way.

Puts together classification, checks of the files and conversion. Writes nothing: the outcome is a
value that a dry run shows and an adoption commits.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyiceberg.schema import Schema
from pyiceberg.table.name_mapping import NameMapping

from frazil.errors import Unsupported
from frazil.format import paths
from frazil.format.batch import EntryBatch
from frazil.format.fields import ContentType, partition_key
from frazil.format.types import arrow_type, promote
from frazil.paimon import binary_row, classify, convert, stats, verify
from frazil.paimon.classify import Classified, FileClass, Verdict
from frazil.paimon.table import PaimonTable, State
from frazil.paimon.vectors import Positions
from frazil.paimon.verify import Listing, Mask

FORMAT_VERSION: Final = 4
SPEC_ID: Final = 0


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Takeover:
    """What taking over one snapshot means."""

    state: State
    found: Classified
    schema: Schema | None
    """The Iceberg schema; None when some column's type stands in the way."""
    problems: tuple[str, ...]
    """Why it cannot be done, empty when it can (with a merge, where files need one)."""
    locations: pa.Array
    """Where the taken files lie, in file order."""

    @property
    def taken(self) -> Mask:
        """Files taken over in place."""
        return self.found.mask(Verdict.TAKEN)

    @property
    def merged(self) -> Mask:
        """Files whose rows must be merged first."""
        return self.found.mask(Verdict.MERGED)

    @property
    def is_ready(self) -> bool:
        """Whether it can be done without a merge."""
        return not self.problems and not self.merged.any()

    @property
    def summary(self) -> pa.Table:
        """One row per class of files."""
        return classify.summary(self.state, self.found)


def prepare(
    table: PaimonTable,
    state: State,
    *,
    exclude: Collection[str] = (),
    listing: Listing | None = None,
    mapping: NameMapping | None = None,
) -> Takeover:
    """Look at everything that decides whether and how a snapshot can be taken over.

    `listing` gives the files that are really there, and checks them; without it existence and
    sizes are not checked, except where a file cannot be found otherwise. `mapping` is the name
    mapping the table will have; that of this snapshot alone when none is given.
    """
    found = classify.classify(state, exclude=exclude)
    problems = list(convert.unsupported_columns(state.schema, exclude).values())
    schema = None
    if not problems:
        earlier = [table.schema(i) for i in table.schema_ids() if i < state.schema.id]
        schema = convert.iceberg_schema(state.schema, earlier=earlier, exclude=exclude)
    if listing is None and verify.inexact_partitions(state):
        listing = Listing(table)
    keep = found.mask(Verdict.TAKEN)
    if listing is None:
        locations = state.files["location"].combine_chunks().filter(pa.array(keep))
    else:
        locations = verify.located(table, state, keep, listing)
    if state.schema.has_primary_key:
        found, locations = _uncounted_deletes(table, state, found, locations)
    if not problems:
        if mapping is None:
            mapping = convert.name_mapping(state.schema, state.schemas.values(), exclude=exclude)
        found, locations = _bound_by_name(table, state, found, locations, mapping)
    refused = [item for item in found.classes if item.verdict is Verdict.REFUSED]
    for item in refused:
        count = int((found.codes == found.classes.index(item)).sum())
        if count:
            problems.append(f"{count} files: {item.reason}. {item.advice}".rstrip(". "))
    return Takeover(
        state=state,
        found=found,
        schema=schema,
        problems=tuple(problems),
        locations=locations,
    )


def _uncounted_deletes(
    table: PaimonTable, state: State, found: Classified, locations: pa.Array
) -> tuple[Classified, pa.Array]:
    """Some writers record no delete rows where there are some: look into level-0 files."""
    taken = np.flatnonzero(found.mask(Verdict.TAKEN))
    suspects = state.files["level"].to_numpy()[taken] == 0
    paths_of = locations.filter(pa.array(suspects)).to_pylist()
    guilty = set(verify.with_delete_rows(table.storage, paths_of))
    if not guilty:
        return found, locations
    hit = pc.is_in(locations, pa.array(sorted(guilty), pa.string())).to_numpy(zero_copy_only=False)
    mask = np.zeros(len(found.codes), bool)
    mask[taken[hit]] = True
    reason = "holds delete rows that its entry does not count"
    found = found.with_class(classify.needs_merge(state.schema, reason), mask)
    return found, locations.filter(pa.array(~hit))


def _bound_by_name(
    table: PaimonTable,
    state: State,
    found: Classified,
    locations: pa.Array,
    mapping: NameMapping,
) -> tuple[Classified, pa.Array]:
    """Files without field ids that the name mapping would bind wrongly are refused."""
    taken = np.flatnonzero(found.mask(Verdict.TAKEN))
    ids = state.files["schema_id"].to_numpy()[taken]
    for schema_id, version in state.schemas.items():
        names = convert.misbound(version, state.schema, mapping)
        if not names:
            continue
        suspects = locations.filter(pa.array(ids == schema_id)).to_pylist()
        lacking = verify.without_field_ids(table.storage, suspects)
        if not lacking:
            continue
        hit = pc.is_in(locations, pa.array(lacking, pa.string())).to_numpy(zero_copy_only=False)
        mask = np.zeros(len(found.codes), bool)
        mask[taken[hit]] = True
        problem = FileClass(
            verdict=Verdict.REFUSED,
            reason=(
                f"has no field ids, and in schema {schema_id} the name {', '.join(names)} meant "
                "another column"
            ),
            advice="compact the table in Paimon to rewrite these files",
        )
        found = found.with_class(problem, mask)
        locations, taken, ids = locations.filter(pa.array(~hit)), taken[~hit], ids[~hit]
    return found, locations


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


def entries(takeover: Takeover, *, location: str, vectors: Mapping[str, Positions]) -> EntryBatch:
    """Entries of the taken files for a table at `location`, without tracking and vectors.

    Row ids that Paimon assigned are kept.
    """
    if takeover.schema is None:
        raise Unsupported("; ".join(takeover.problems), feature="paimon")
    state = takeover.state
    files = state.files.filter(pa.array(takeover.taken))
    if files.num_rows == 0:
        return EntryBatch.empty()
    partitions = _partitions(state, files, takeover.schema)
    has_vector = pc.is_in(takeover.locations, pa.array(list(vectors), pa.string()))
    exact = ~has_vector.to_numpy(zero_copy_only=False)
    formats = pc.replace_substring_regex(files["file_name"], r"^.*\.", "")
    count = files.num_rows
    columns = {
        "content_type": pa.repeat(pa.scalar(int(ContentType.DATA), pa.int32()), count),
        "format_version": pa.repeat(pa.scalar(FORMAT_VERSION, pa.int32()), count),
        "location": paths.relativise_all(location, pa.chunked_array([takeover.locations])),
        "file_format": formats,
        "record_count": files["row_count"],
        "file_size_in_bytes": files["file_size"],
    }
    if partitions:
        columns["spec_id"] = pa.repeat(pa.scalar(SPEC_ID, pa.int32()), count)
    if files["first_row_id"].null_count < count:
        columns["tracking.first_row_id"] = files["first_row_id"]
    ids = convert.partition_field_ids(state.schema)
    sources = [field.id for field in state.schema.partition_fields]
    for partition_id, values in zip(ids, partitions, strict=True):
        columns[partition_key(partition_id)] = values
    columns |= stats.content_stats(
        files,
        state.schemas,
        takeover.schema,
        constants=dict(zip(sources, partitions, strict=True)),
        exact=exact,
    )
    return EntryBatch(pa.table(columns).combine_chunks())


def _partitions(state: State, files: pa.Table, schema: Schema) -> list[pa.Array]:
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
