"""The Paimon table that the guide to Paimon speaks of, laid out by hand."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from tests.unit.paimon.encode import entry
from tests.unit.paimon.place import Place


def lay_out(folder: Path) -> None:
    """An append-only table of three rows in one file and one snapshot."""
    place = Place(folder)
    place.schema(("id", "INT"), ("name", "STRING"))
    schema = pa.schema(
        [
            pa.field("id", pa.int32(), metadata={"PARQUET:field_id": "0"}),
            pa.field("name", pa.string(), metadata={"PARQUET:field_id": "1"}),
        ]
    )
    path = folder / "bucket-0" / "data-1.parquet"
    path.parent.mkdir(parents=True)
    pq.write_table(pa.table([[1, 2, 3], ["a", "b", "c"]], schema=schema), path)
    place.snapshot(1, [entry(path.name, file_size=path.stat().st_size, row_count=3)])
