"""Writers are killed at random moments; what they reported is there, nothing is there twice.

Each writer notes in a file of its own what it is about to do and what it was told has landed. A
step without an answer may have landed or not. Runs for a few kills, or for FRAZIL_SOAK_SECONDS.
"""

from __future__ import annotations

import json
import multiprocessing
import os
import random
import time
from collections import Counter
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import frazil
from frazil.errors import CommitConflict
from tests.support.object_server import Bucket
from tests.support.postgres import postgres_uri as postgres_uri

SCHEMA = pa.schema([("id", pa.int64()), ("writer", pa.int64()), ("value", pa.int64())])
PROPERTIES = {"write.root.max-data-entries": "10", "commit.retry.num-retries": "1000"}
WRITERS = 3
KILLS = 6
SECONDS = float(os.environ.get("FRAZIL_SOAK_SECONDS", "0"))
_contexts = multiprocessing.get_context("spawn")


def _work(uri: str, options: dict[str, str], writer: int, life: int, notes: str) -> None:
    """Append, update and delete rows of this writer's own until the process is killed."""
    rng = random.Random(f"{writer} {life}")
    table = frazil.connect(uri, **options).load_table("shop.things")
    number = 0
    with open(notes, "a", buffering=1) as log:
        log.write(json.dumps({"life": life}) + "\n")
        while True:
            table.refresh()
            first = (writer * 1_000 + life) * 100_000 + number
            number += 3
            ids = [first, first + 1, first + 2]
            kind = rng.choice(["append", "append", "delete", "update", "transaction"])
            log.write(json.dumps({"do": kind, "ids": ids}) + "\n")
            rows = pa.table({"id": ids, "writer": [writer] * 3, "value": [0] * 3}, schema=SCHEMA)
            try:
                if kind == "transaction":
                    with table.transaction() as tx:
                        tx.append(rows)
                        tx.delete(f"id = {first}")
                        tx.update({"value": 1}, f"id = {first + 1}")
                else:
                    table.append(rows)
                    if kind == "delete":
                        table.refresh().delete(f"id = {first}")
                    elif kind == "update":
                        table.refresh().update({"value": 1}, f"id = {first + 1}")
            except CommitConflict:
                log.write(json.dumps({"conflict": ids}) + "\n")
            else:
                log.write(json.dumps({"done": ids}) + "\n")


def _expected(kind: str, ids: list[int]) -> list[dict[int, int]]:
    """The states a step passes through, as values by id: before, between, after."""
    all_new = dict.fromkeys(ids, 0)
    without = dict.fromkeys(ids[1:], 0)
    changed = {**all_new, ids[1]: 1}
    match kind:
        case "append":
            return [{}, all_new]
        case "delete":
            return [{}, all_new, without]
        case "update":
            return [{}, all_new, changed]
        case _:
            return [{}, {ids[1]: 1, ids[2]: 0}]


def _notes(path: Path) -> Iterator[tuple[str, list[int], str]]:
    """Steps with how they ended: done, conflict, or killed."""
    open_step: dict[str, Any] | None = None
    for line in path.read_text().splitlines():
        note = json.loads(line) if line.endswith("}") else {}
        if "do" in note:
            if open_step is not None:
                yield open_step["do"], open_step["ids"], "killed"
            open_step = note
        elif open_step is not None and ("done" in note or "conflict" in note):
            yield open_step["do"], open_step["ids"], "done" if "done" in note else "conflict"
            open_step = None
    if open_step is not None:
        yield open_step["do"], open_step["ids"], "killed"


def _is_on(left: int, end: float) -> bool:
    return left > 0 or time.monotonic() < end


def _wait_until_begun(notes: Path, life: int) -> None:
    end = time.monotonic() + 120
    while not notes.exists() or json.dumps({"life": life}) not in notes.read_text().splitlines():
        assert time.monotonic() < end, "a writer did not start"
        time.sleep(0.02)


@pytest.mark.parametrize("database", ["sqlite", "postgresql", "s3"])
@pytest.mark.timeout(int(SECONDS * 4) + 600)
def test_killed_writers_lose_nothing_and_double_nothing(
    database: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    options = {"warehouse": f"file://{tmp_path}/warehouse"}
    uri = f"sqlite:///{tmp_path}/catalog.db"
    if database == "postgresql":
        uri = request.getfixturevalue("postgres_uri")
    elif database == "s3":
        bucket: Bucket = request.getfixturevalue("bucket")
        uri, options = bucket.warehouse, bucket.properties
    catalog = frazil.connect(uri, **options)
    name = "shop.things"
    if catalog.table_exists(name):
        catalog.drop_table(name)
    table = catalog.create_table(name, SCHEMA, properties=PROPERTIES)
    rng = random.Random(0)
    lives = Counter[int]()
    running: dict[int, Any] = {}

    def start(writer: int) -> None:
        lives[writer] += 1
        notes = str(tmp_path / f"notes-{writer}.jsonl")
        arguments = (uri, options, writer, lives[writer], notes)
        running[writer] = _contexts.Process(target=_work, args=arguments, daemon=True)
        running[writer].start()

    for writer in range(WRITERS):
        start(writer)
    left, end = KILLS, time.monotonic() + SECONDS
    while _is_on(left, end):
        victim = rng.randrange(WRITERS)
        _wait_until_begun(tmp_path / f"notes-{victim}.jsonl", lives[victim])
        time.sleep(rng.random() * 0.8)
        running[victim].kill()
        running[victim].join()
        left -= 1
        if _is_on(left, end):
            start(victim)
    for process in running.values():
        process.kill()
        process.join()

    _check(catalog.load_table(name), tmp_path)
    table.refresh().remove_orphan_files(older_than=datetime.now(UTC) + timedelta(minutes=5))
    _check(catalog.load_table(name), tmp_path)
    table.refresh().append(
        pa.table({"id": [-1], "writer": [-1], "value": [0]}, schema=SCHEMA)
    )  # nobody left a lock behind


def _check(table: frazil.Table, folder: Path) -> None:
    rows = table.scan(columns=["id", "value", "_row_id"]).to_pylist()
    found = {row["id"]: row["value"] for row in rows}
    assert len(found) == len(rows), "a row is there twice"
    assert len({row["_row_id"] for row in rows}) == len(rows), "two rows share a row id"
    known: set[int] = set()
    steps = 0
    for path in sorted(folder.glob("notes-*.jsonl")):
        for kind, ids, end in _notes(path):
            steps += 1
            known.update(ids)
            states = _expected(kind, ids)
            allowed = states[-1:] if end == "done" else states
            assert {id: found[id] for id in ids if id in found} in allowed, (kind, ids, end)
    assert steps, "no writer got to work"
    assert not set(found) - known - {-1}
    report = table.check(deep=True)
    assert not report.problems, str(report)
