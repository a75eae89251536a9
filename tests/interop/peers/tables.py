"""Tables of v1, v2, v3 and interim v4 that other writers made, with their rows at every snapshot.

They are made once per checkout into `.cache/peers`, as making them takes a minute, and again when
the code that makes them changes. Every path in them is absolute, so they cannot be copied: a test
may add files beside theirs and point a catalog of its own at new metadata, but must not change or
remove what is there.
"""

from __future__ import annotations

import hashlib
import json
import shutil
import sqlite3
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlparse

import fastavro
import pyarrow as pa
import pyarrow.parquet as pq

from tests.interop.peers import java_tables, pyiceberg_tables
from tests.interop.peers.readers import LINEAGE_COLUMNS, read_with_java, read_with_pyiceberg
from tests.support.java import HARNESS, ICEBERG_RUNTIME, SQLITE_JDBC, JavaOracle, maven_jar
from tests.support.peer_process import write_samples
from tests.support.project import CACHE, ROOT, locked
from tests.support.venvs import ICEBERG_SPARK

_HERE = Path(__file__).parent
_SPARK_SCRIPT = _HERE / "spark_tables.py"


@dataclass(frozen=True, slots=True, kw_only=True)
class PeerSnapshot:
    """One snapshot and the file with the rows that its writer reads from it."""

    id: int
    parent_id: int | None
    sequence_number: int
    operation: str
    rows_path: str


@dataclass(frozen=True, slots=True, kw_only=True)
class PeerTable:
    """A table as its writer left it. `writer` is spark, java or pyiceberg.

    `row_count` is what Spark itself counts at the end; the rows come from Iceberg's Java API.
    A table that is in an SQL catalog has its SQLite file in `catalog_db`: copy that file before
    changing it.
    """

    name: str
    writer: str
    format_version: int
    location: str
    metadata_location: str
    current_snapshot_id: int | None
    refs: Mapping[str, int]
    snapshots: tuple[PeerSnapshot, ...]
    rows_path: str
    notes: str
    row_count: int | None = None
    catalog_db: str | None = None
    catalog_name: str | None = None
    identifier: str | None = None

    def rows(self, snapshot_id: int | None = None, *, row_lineage: bool = False) -> pa.Table:
        """The rows of a snapshot in its schema; unless told, the table's in the current schema.

        From v3 on, `row_lineage` adds `_row_id` and `_last_updated_sequence_number`.
        """
        path = self.rows_path
        if snapshot_id is not None:
            path = next(one.rows_path for one in self.snapshots if one.id == snapshot_id)
        table = pq.read_table(path)
        if row_lineage:
            return table
        return table.drop_columns([name for name in LINEAGE_COLUMNS if name in table.column_names])


SPARK_NAMES = (
    "v1_appends",
    "v1_partitioned",
    "v1_to_v3",
    "v1_types",
    "v1_without_manifest_lists",
    "v2_branches",
    "v2_cow",
    "v2_emptied",
    "v2_empty",
    "v2_evolved",
    "v2_many_manifests",
    "v2_mor",
    "v2_mor_partition_granularity",
    "v2_rewritten",
    "v3_branches",
    "v3_cow",
    "v3_evolved",
    "v3_mor",
    "v3_rewritten",
    "v3_to_v4",
    "v3_types",
    "v4_cow",
    "v4_evolved",
    "v4_mor",
    "v4_types",
)
JAVA_NAMES = tuple(f"java_{maker.__name__}" for maker in java_tables.MAKERS)
PYICEBERG_NAMES = tuple(f"pyiceberg_{maker.__name__}" for maker in pyiceberg_tables.MAKERS)
NAMES = (*SPARK_NAMES, *JAVA_NAMES, *PYICEBERG_NAMES)
"""Known before the tables are made, so that tests can be parametrised by them."""


def peer_tables(java: JavaOracle) -> dict[str, PeerTable]:
    """Every table by name, made now if this checkout does not have them yet."""
    folder = CACHE / "peers" / _digest()
    listing = folder / "peers.json"
    if not listing.exists():
        with locked("peers"):
            if not listing.exists():
                shutil.rmtree(folder, ignore_errors=True)
                folder.mkdir(parents=True)
                made = [asdict(table) for table in _make(java, folder)]
                draft = listing.with_suffix(".draft")
                draft.write_text(json.dumps(made, indent=1))
                draft.rename(listing)
    return {table["name"]: _loaded(table) for table in json.loads(listing.read_text())}


def _loaded(table: dict[str, Any]) -> PeerTable:
    snapshots = tuple(PeerSnapshot(**snapshot) for snapshot in table.pop("snapshots"))
    return PeerTable(snapshots=snapshots, **table)


def _digest() -> str:
    support = [ROOT / "tests" / "support" / "values.py", *HARNESS.rglob("OracleWrites.java")]
    sources = sorted([*_HERE.glob("*tables.py"), *support])
    content = b"".join(source.read_bytes() for source in sources)
    return hashlib.sha256(ICEBERG_RUNTIME.encode() + content).hexdigest()[:16]


def _make(java: JavaOracle, folder: Path) -> Iterator[PeerTable]:
    rows = folder / "rows"
    rows.mkdir()
    for name, location, notes, row_count in _spark(folder / "spark"):
        described = _described(java, rows, name, "spark", location, notes)
        yield replace(
            described,
            row_count=row_count,
            catalog_db=str(folder / "spark" / "catalog.db"),
            catalog_name="peer",
            identifier=f"spark.{name}",
        )
    for make in java_tables.MAKERS:
        table = make(java, folder / "java" / make.__name__)
        location, notes = table.state["metadata_location"], make.__doc__ or ""
        yield _described(java, rows, f"java_{make.__name__}", "java", location, notes)
    catalog = pyiceberg_tables.catalog(folder / "pyiceberg")
    catalog.create_namespace("peers")
    for create in pyiceberg_tables.MAKERS:
        create(catalog)
        location = catalog.load_table(f"peers.{create.__name__}").metadata_location
        name, notes = f"pyiceberg_{create.__name__}", create.__doc__ or ""
        yield replace(
            _described(java, rows, name, "pyiceberg", location, notes),
            catalog_db=str(folder / "pyiceberg" / "catalog.db"),
            catalog_name="pyiceberg",
            identifier=f"peers.{create.__name__}",
        )


def _spark(folder: Path) -> Iterator[tuple[str, str, str, int | None]]:
    report = folder / "report.json"
    jars = ",".join(str(maven_jar(jar)) for jar in (ICEBERG_RUNTIME, SQLITE_JDBC))
    python = ICEBERG_SPARK.ready().python
    command = [str(python), str(_SPARK_SCRIPT), str(folder), jars, str(report)]
    log = folder.with_name("spark.log")
    write_samples(
        "Iceberg on Spark",
        command,
        complete=report,
        log=log,
        prepare=lambda: _emptied(folder),
        cwd=folder,
    )
    with sqlite3.connect(folder / "catalog.db") as catalog:
        found = catalog.execute("SELECT table_name, metadata_location FROM iceberg_tables")
        locations: dict[str, str] = dict(found.fetchall())
    for table in json.loads(report.read_text()):
        yield table["name"], locations[table["name"]], table["notes"], table["row_count"]
    location = without_manifest_lists(local_path(locations["v1_appends"]))
    notes = "v1; snapshots list their manifests themselves"
    yield "v1_without_manifest_lists", location, notes, None


def _emptied(folder: Path) -> None:
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()


def without_manifest_lists(metadata: Path) -> str:
    """The metadata of a v1 table as the oldest writers left it: `manifests`, no `manifest-list`."""
    content = json.loads(metadata.read_text())
    for snapshot in content["snapshots"]:
        with local_path(snapshot.pop("manifest-list")).open("rb") as file:
            snapshot["manifests"] = [entry["manifest_path"] for entry in fastavro.reader(file)]
    changed = metadata.with_name(f"00099-{content['table-uuid']}.metadata.json")
    changed.write_text(json.dumps(content))
    return changed.as_uri()


def local_path(location: str) -> Path:
    """The path of a location on this machine, with or without a scheme."""
    return Path(unquote(urlparse(location).path) if location.startswith("file:") else location)


def _described(
    java: JavaOracle, rows: Path, name: str, writer: str, location: str, notes: str
) -> PeerTable:
    seen = java.call("table.describe", metadata_location=location)

    def stored(snapshot_id: int | None) -> str:
        if writer == "pyiceberg":
            table = read_with_pyiceberg(location, snapshot_id=snapshot_id)
        else:
            lineage = seen["format_version"] >= 3
            table = read_with_java(java, location, snapshot_id=snapshot_id, row_lineage=lineage)
        path = rows / f"{name}-{snapshot_id or 'current'}.parquet"
        pq.write_table(table, path)
        return str(path)

    return PeerTable(
        name=name,
        writer=writer,
        format_version=seen["format_version"],
        location=seen["location"],
        metadata_location=location,
        current_snapshot_id=seen["current_snapshot_id"],
        refs=seen["refs"],
        snapshots=tuple(
            PeerSnapshot(
                id=snapshot["snapshot_id"],
                parent_id=snapshot["parent_snapshot_id"],
                sequence_number=snapshot["sequence_number"],
                operation=snapshot["operation"],
                rows_path=stored(snapshot["snapshot_id"]),
            )
            for snapshot in seen["snapshots"]
        ),
        rows_path=stored(None),
        notes=notes,
    )
