"""Eight processes append and delete at once; the rows at the end are what they reported.

Runs for a few seconds, or for FRAZIL_SOAK_SECONDS (`make soak` takes a minute per catalog, and adds
a bucket of MinIO).
"""

from __future__ import annotations

import multiprocessing
import os
import random
import time
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest

import frazil
from frazil.errors import CommitConflict
from tests.support.object_server import Bucket, minio
from tests.support.postgres import postgres_uri as postgres_uri

SCHEMA = pa.schema([("id", pa.int64()), ("writer", pa.int64())])
WRITERS = 8
SECONDS = float(os.environ.get("FRAZIL_SOAK_SECONDS", "6"))


def work(
    uri: str, options: dict[str, str], writer: int, seconds: float
) -> tuple[set[int], set[int], int]:
    """Append and delete until the time is up; returns what this writer was told has landed."""
    rng = random.Random(writer)
    table = frazil.connect(uri, **options).load_table("shop.things")
    added: set[int] = set()
    deleted: set[int] = set()
    conflicts = 0
    number = 0
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        alive = sorted(added - deleted)
        if alive and rng.random() < 0.3:
            victim = rng.choice(alive)
            try:
                table.refresh().delete(f"id = {victim}")
                deleted.add(victim)
            except CommitConflict:
                conflicts += 1
        else:
            ids = [writer * 1_000_000 + number + step for step in range(3)]
            number += 3
            table.append(pa.table({"id": ids, "writer": [writer] * 3}, schema=SCHEMA))
            added.update(ids)
    return added, deleted, conflicts


@pytest.fixture
def minio_bucket() -> Iterator[Bucket]:
    """A bucket of MinIO, which takes minutes to build."""
    if "FRAZIL_SOAK_SECONDS" not in os.environ:
        pytest.skip("MinIO is part of make soak")
    with minio() as made:
        yield made


@pytest.mark.parametrize("kind", ["sqlite", "postgresql", "versitygw", "minio"])
@pytest.mark.timeout(int(SECONDS * 4) + 300)
def test_what_was_reported_committed_is_what_is_there(
    kind: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    options = {"warehouse": f"file://{tmp_path}/warehouse"}
    uri = f"sqlite:///{tmp_path}/catalog.db"
    if kind == "postgresql":
        uri = request.getfixturevalue("postgres_uri")
    elif kind in ("versitygw", "minio"):
        place = "bucket" if kind == "versitygw" else "minio_bucket"
        bucket: Bucket = request.getfixturevalue(place)
        uri, options = bucket.warehouse, bucket.properties
    catalog = frazil.connect(uri, **options)
    properties = {
        "write.root.max-data-entries": "20",
        "commit.retry.num-retries": "1000",
        "write.delete.isolation-level": "snapshot",
    }
    table = catalog.create_table("shop.things", SCHEMA, properties=properties)
    context = multiprocessing.get_context("spawn")
    with context.Pool(WRITERS) as pool:
        arguments = [(uri, options, writer, SECONDS) for writer in range(WRITERS)]
        reports = pool.starmap(work, arguments)
    expected = set[int]()
    for added, deleted, _ in reports:
        expected |= added - deleted
    table.refresh()
    found = table.scan(columns=["id"]).to_arrow()["id"].to_pylist()
    assert sorted(found) == sorted(expected)
    assert all(added for added, _, _ in reports), "a writer starved"
    assert not table.check(deep=True).problems
    versions = len(list(table.snapshots()))
    print(f"{kind}: {versions} commits of {WRITERS} writers in {SECONDS:.0f} s")
