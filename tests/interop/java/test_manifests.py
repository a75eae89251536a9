"""Manifests we write, read by Iceberg Java's own v4 reader and compared entry by entry."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from frazil.format import manifest
from frazil.format.batch import EntryBatch
from tests.interop.java import scenarios
from tests.interop.java.scenarios import SCHEMA_WITH_DERIVED, SPECS, TABLE_LOCATION, Entry, Inherited
from tests.support.java import JavaOracle

pytestmark = pytest.mark.java

Reader = Callable[..., list[Entry]]
QUICK = settings(
    max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow], print_blob=True
)
NAMES = manifest.ColumnNames(
    stats={id: SCHEMA_WITH_DERIVED.find_column_name(id) or "" for id in scenarios.STATS_TYPES},
    partition={field.field_id: field.name for spec in SPECS for field in spec.fields},
    uuids=["content_stats.13.lower_bound", "content_stats.13.upper_bound", "partition.1013"],
)


@pytest.fixture(scope="module")
def read_with_java(java: JavaOracle, tmp_path_factory: pytest.TempPathFactory) -> Reader:
    """Writes entries as a manifest with Frazil and answers with what Java reads from it."""
    folder = tmp_path_factory.mktemp("manifests")

    def read(
        entries: Sequence[Entry],
        inherited: Inherited,
        *,
        content: manifest.Content,
        codec: str = "zstd",
        **more: Any,
    ) -> list[Entry]:
        batch = EntryBatch.from_rows(entries, scenarios.column_types())
        data = manifest.encode(batch, content=content, names=NAMES, codec=codec)
        path = Path(folder / scenarios.new_name())
        path.write_bytes(data)
        dump = java.call(
            "manifest.read",
            path=str(path),
            length=len(data),
            schema=SCHEMA_WITH_DERIVED.model_dump(mode="json"),
            specs=[spec.model_dump(mode="json") for spec in SPECS],
            table_location=TABLE_LOCATION,
            snapshot_id=inherited.snapshot_id,
            sequence_number=inherited.sequence_number,
            first_row_id=inherited.first_row_id,
            **more,
        )
        path.unlink()
        return [scenarios.flattened(entry) for entry in dump]

    return read


def _without_row_ids_of_deletes(entries: list[Entry]) -> list[Entry]:
    """Java numbers the rows of every live entry; only data files and data manifests have row ids."""
    for entry in entries:
        if entry["content_type"] in (2, 4):
            entry.pop("tracking.first_row_id", None)
    return entries


@given(entries=scenarios.roots(), codec=st.sampled_from(["zstd", "snappy", "lz4", "none"]))
@QUICK
def test_a_root_reads_back_as_written(
    read_with_java: Reader, entries: list[Entry], codec: str
) -> None:
    inherited = Inherited()
    seen = read_with_java(entries, inherited, content="root", codec=codec)
    expected = scenarios.as_read(entries, inherited)
    assert _without_row_ids_of_deletes(seen) == _without_row_ids_of_deletes(expected)


@given(entries=scenarios.leaves())
@QUICK
def test_a_leaf_inherits_what_it_leaves_null(read_with_java: Reader, entries: list[Entry]) -> None:
    inherited = Inherited()
    seen = read_with_java(entries, inherited, content="data")
    assert seen == scenarios.as_read(entries, inherited)


@given(entries=scenarios.delete_leaves())
@QUICK
def test_a_leaf_of_equality_deletes_reads_back_as_written(
    read_with_java: Reader, entries: list[Entry]
) -> None:
    inherited = Inherited(first_row_id=None)
    seen = read_with_java(entries, inherited, content="delete")
    assert seen == scenarios.as_read(entries, inherited)
