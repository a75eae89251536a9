"""A Paimon table with very many files that exist in metadata only; runs in pypaimon's own venv.

    python big_table.py write <warehouse> <files>    the table db.big, partitioned, with statistics
    python big_table.py list <warehouse>             open and list it with pypaimon; prints JSON

The manifests are pypaimon's own, copied entry by entry with other names, partitions and bounds.
"""

from __future__ import annotations

import json
import os
import struct
import sys
import time
import uuid
from pathlib import Path
from typing import Any

import fastavro
import pyarrow as pa
from pypaimon import CatalogFactory, Schema

PARTITIONS = 1000
PER_MANIFEST = 10_000
COLUMNS = pa.schema(
    [
        *(("id", pa.int64()), ("name", pa.string()), ("day", pa.string())),
        *(("v", pa.float64()), ("ts", pa.timestamp("us"))),
    ]
)


def write(warehouse: Path, files: int) -> None:
    """The table, its one snapshot and as many manifests as the files need."""
    catalog = CatalogFactory.create({"warehouse": str(warehouse)})
    catalog.create_database("db", True)
    options = {"metadata.stats-mode": "full"}
    schema = Schema.from_pyarrow_schema(COLUMNS, partition_keys=["day"], options=options)
    catalog.create_table("db.big", schema, False)
    builder = catalog.get_table("db.big").new_batch_write_builder()
    writer, commit = builder.new_write(), builder.new_commit()
    row = {"id": 1, "name": "n", "day": "d", "v": 1.0, "ts": 0}
    writer.write_arrow(pa.Table.from_pylist([row], schema=COLUMNS))
    commit.commit(writer.prepare_commit())
    _multiply(warehouse / "db.db" / "big", files)


def _multiply(table: Path, files: int) -> None:
    snapshot = json.loads((table / "snapshot" / "snapshot-1").read_text())
    delta = table / "manifest" / snapshot["deltaManifestList"]
    base = table / "manifest" / snapshot["baseManifestList"]
    list_schema, (listed,) = _records(delta)
    schema, (template,) = _records(table / "manifest" / listed["_FILE_NAME"])
    lists = []
    for start in range(0, files, PER_MANIFEST):
        name = f"manifest-{uuid.UUID(int=start + 2**120)}-0"
        numbers = range(start, min(start + PER_MANIFEST, files))
        path = table / "manifest" / name
        _write(path, schema, [_entry(template, number) for number in numbers])
        lists.append(
            {
                **listed,
                "_FILE_NAME": name,
                "_FILE_SIZE": os.path.getsize(path),
                "_NUM_ADDED_FILES": len(numbers),
                "_PARTITION_STATS": {
                    "_MIN_VALUES": _row([_text(b"d0000")]),
                    "_MAX_VALUES": _row([_text(b"d0999")]),
                    "_NULL_COUNTS": [0],
                },
            }
        )
    _write(base, list_schema, lists)
    _write(delta, list_schema, [])
    for key in ("baseManifestListSize", "deltaManifestListSize"):
        snapshot.pop(key, None)
    (table / "snapshot" / "snapshot-1").write_text(json.dumps(snapshot))


def _records(path: Path) -> tuple[Any, list[Any]]:
    with path.open("rb") as source:
        reader = fastavro.reader(source)
        return reader.writer_schema, list(reader)


def _write(path: Path, schema: Any, records: list[Any]) -> None:
    with path.open("wb") as sink:
        fastavro.writer(sink, schema, records, codec="zstandard", sync_interval=64_000)


def _row(slots: list[bytes], tail: bytes = b"") -> bytes:
    return struct.pack(">i", len(slots)) + bytes(8) + b"".join(slots) + tail


def _text(value: bytes) -> bytes:
    return value.ljust(7, b"\0") + bytes([0x80 | len(value)])


def _entry(template: dict[str, Any], number: int) -> dict[str, Any]:
    day = _text(b"d%04d" % (number % PARTITIONS))

    def bounds(shift: int) -> bytes:
        slots = [struct.pack("<q", number * 10 + shift), struct.pack("<II", 12, 48), day]
        slots += [struct.pack("<d", number / 2 + shift), struct.pack("<II", 5000, 64)]
        name = b"name%08d" % (number + shift)
        return _row(slots, name + bytes(4) + struct.pack("<q", 1704164646678 + number + shift))

    stats = {"_MIN_VALUES": bounds(0), "_MAX_VALUES": bounds(9), "_NULL_COUNTS": [0, 1, 0, 0, 2]}
    file = {
        **template["_FILE"],
        "_FILE_NAME": f"data-{uuid.UUID(int=number * 7919 + 2**100)}-0.parquet",
        "_FILE_SIZE": 1000 + number,
        "_ROW_COUNT": 10,
        "_VALUE_STATS": stats,
    }
    return {**template, "_PARTITION": _row([day]), "_FILE": file}


def listed(warehouse: Path) -> dict[str, Any]:
    """How long pypaimon takes to open the table and plan a scan of it, and what it finds."""
    start = time.perf_counter()
    table = CatalogFactory.create({"warehouse": str(warehouse)}).get_table("db.big")
    splits = table.new_read_builder().new_scan().plan().splits()
    seconds = time.perf_counter() - start
    names = sorted(file.file_name for split in splits for file in split.files)
    return {"seconds": seconds, "files": len(names), "first": names[0], "last": names[-1]}


def main() -> None:
    command, warehouse = sys.argv[1], Path(sys.argv[2])
    if command == "write":
        write(warehouse, int(sys.argv[3]))
        Path(sys.argv[4]).touch()  # complete, however the process ends
    else:
        listing = Path(sys.argv[3])
        draft = listing.with_suffix(".draft")
        draft.write_text(json.dumps(listed(warehouse)))
        draft.rename(listing)


if __name__ == "__main__":
    main()
