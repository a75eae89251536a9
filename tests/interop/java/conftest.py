"""Manifests that Frazil writes and Iceberg Java reads."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from frazil.format.entries import manifest
from frazil.format.entries.batch import EntryBatch
from frazil.format.entries.fields import REVISION_1_12
from frazil.format.entries.nest import ColumnNames
from tests.interop.java import scenarios
from tests.interop.java.scenarios import (
    SCHEMA_WITH_DERIVED,
    SPECS,
    TABLE_LOCATION,
    Entry,
    Inherited,
)
from tests.interop.peers.readers import read_manifest_with_java
from tests.support.java import JavaOracle

NAMES = ColumnNames(
    partition={field.field_id: field.name for spec in SPECS for field in spec.fields},
    uuids=["content_stats.13.lower_bound", "content_stats.13.upper_bound", "partition.1013"],
)


@dataclass(frozen=True, slots=True, kw_only=True)
class JavaReader:
    """Writes entries as a manifest with Frazil and answers with what Java reads from it."""

    java: JavaOracle
    folder: Path

    def read(
        self,
        entries: Sequence[Entry],
        inherited: Inherited,
        *,
        content: manifest.Content,
        codec: str | None = "zstd",
        **more: Any,
    ) -> list[Entry]:
        """Flat entries, in the form of `scenarios.as_read`."""
        batch = EntryBatch.from_rows(entries, scenarios.column_types())
        data = manifest.encode(
            batch, content=content, names=NAMES, codec=codec, revision=REVISION_1_12
        )
        dump = self.dump(data, schema=SCHEMA_WITH_DERIVED, inherited=inherited, **more)
        return [scenarios.flattened(entry) for entry in dump]

    def dump(
        self, data: bytes, *, schema: Any, inherited: Inherited, specs: Any = SPECS, **more: Any
    ) -> list[dict[str, Any]]:
        """The entries of a manifest file as the harness shows them."""
        path = self.folder / scenarios.new_name()
        path.write_bytes(data)
        dump = read_manifest_with_java(
            self.java,
            path,
            schema=schema,
            specs=specs,
            table_location=TABLE_LOCATION,
            snapshot_id=inherited.snapshot_id,
            sequence_number=inherited.sequence_number,
            first_row_id=inherited.first_row_id,
            **more,
        )
        path.unlink()
        return dump


@pytest.fixture(scope="session")
def java_reader(java: JavaOracle, tmp_path_factory: pytest.TempPathFactory) -> JavaReader:
    """Iceberg Java's v4 manifest reader."""
    return JavaReader(java=java, folder=tmp_path_factory.mktemp("manifests"))
