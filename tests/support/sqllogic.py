"""Files of SQL with expected results, in the manner of sqllogictest; any engine can run them.

    # a comment
    onlyif duckdb | skipif spark     the next record is for this engine alone, or not for it

    statement ok
    INSERT …

    statement error does not exist   a regular expression that the message must contain
    SELECT …

    query [rowsort]                  rowsort: rows in any order
    SELECT …
    ----
    1 | text                         expected rows; values as text, NULL for null

Records are separated by blank lines. Every file starts with an empty catalog.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

Run = Callable[[str], Sequence[Sequence[str]]]
"""Runs a statement and gives its rows as text; raises what went wrong."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Record:
    """One statement, and what is expected of it."""

    line: int
    sql: str
    error: str | None = None
    rows: tuple[str, ...] | None = None
    in_order: bool = True
    only: str | None = None
    skip: str | None = None

    def is_for(self, engine: str) -> bool:
        """Whether an engine runs it."""
        return self.only in (None, engine) and self.skip != engine


def records(path: Path) -> Iterator[Record]:
    """The records of a file."""
    lines = [(n, line.rstrip()) for n, line in enumerate(path.read_text().splitlines(), start=1)]
    block: list[tuple[int, str]] = []
    for number, line in [*lines, (len(lines) + 1, "")]:
        if line.startswith("#"):
            continue
        if line:
            block.append((number, line))
        elif block:
            yield _record(block, path)
            block = []


def _record(block: list[tuple[int, str]], path: Path) -> Record:
    options: dict[str, Any] = {}
    while block[0][1].split()[0] in ("onlyif", "skipif"):
        word, engine = block.pop(0)[1].split()
        options["only" if word == "onlyif" else "skip"] = engine
    number, head = block[0]
    body = [line for _, line in block[1:]]
    kind, _, rest = head.partition(" ")
    if kind == "statement" and rest == "ok":
        return Record(line=number, sql="\n".join(body), **options)
    if kind == "statement" and rest.split()[0] == "error":
        error = rest.removeprefix("error").strip()
        return Record(line=number, sql="\n".join(body), error=error, **options)
    if kind == "query" and "----" in body:
        cut = body.index("----")
        return Record(
            line=number,
            sql="\n".join(body[:cut]),
            rows=tuple(body[cut + 1 :]),
            in_order="rowsort" not in rest.split(),
            **options,
        )
    raise AssertionError(f"{path.name}:{number}: cannot read {head!r}")


def check_file(path: Path, engine: str, run: Run) -> None:
    """Run a file's records one after the other; fails at the first that is not as expected."""
    for record in records(path):
        if record.is_for(engine):
            check(record, path, run)


def check(record: Record, path: Path, run: Run) -> None:
    """Run one record."""
    where = f"{path.name}:{record.line}\n{record.sql}"
    if record.error is not None:
        told = _failure(record.sql, run)
        assert told is not None, f"{where}\nsucceeded, but {record.error!r} was expected"
        assert re.search(record.error, told), f"{where}\nfailed with: {told}"
        return
    try:
        rows = run(record.sql)
    except Exception as error:
        raise AssertionError(f"{where}\nfailed: {type(error).__name__}: {error}") from error
    if record.rows is None:
        return
    found = [" | ".join(row).rstrip() for row in rows]
    wanted = list(record.rows)
    if not record.in_order:
        found, wanted = sorted(found), sorted(wanted)
    assert found == wanted, f"{where}\nfound:\n" + "\n".join(found)


def _failure(sql: str, run: Run) -> str | None:
    try:
        run(sql)
    except Exception as error:
        return str(error)
    return None
