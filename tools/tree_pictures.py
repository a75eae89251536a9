"""Draws the pictures of docs/how-it-works.md from real tables, as `frazil tree --format svg` does.

    python tools/tree_pictures.py [folder]

Files get short names in the order they appear, and sizes are left out, so that the pictures are
the same from run to run.
"""

from __future__ import annotations

import re
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from datetime import date
from pathlib import Path

import pyarrow as pa
from pyiceberg.catalog.sql import SqlCatalog

import frazil
from frazil.cli.terminal.drawing import Drawing, Node, draw
from frazil.cli.terminal.render import svg

SCHEMA = pa.schema([("id", pa.int64()), ("day", pa.date32())])
PROPERTIES = {"write.root.max-data-entries": "4"}
FOLDER = Path(__file__).resolve().parents[1] / "docs" / "assets"

_SIZE = re.compile(r"[\d.]+ [kMGT]?B")


def rows(number: int) -> pa.Table:
    """A hundred orders of one day."""
    ids = range(100 * number, 100 * number + 100)
    day = date(2024, 1, 1 + number)
    return pa.table({"id": list(ids), "day": [day] * 100}, schema=SCHEMA)


class Names:
    """Short names for the files of one table: D1, D2, M1, …"""

    def __init__(self) -> None:
        self._known: dict[str, str] = {}
        self._counts: Counter[str] = Counter()

    def drawing(self, drawing: Drawing, title: str) -> Drawing:
        """The drawing with short names, under a title that says what was done."""
        entries = drawing.root.rpartition(" · ")[2]
        nodes = tuple(self._node(node) for node in drawing.nodes)
        return replace(drawing, title=title, root=f"root · {entries}", nodes=nodes)

    def _node(self, node: Node) -> Node:
        if node.name not in self._known:
            self._counts[node.letter] += 1
            self._known[node.name] = f"{node.letter}{self._counts[node.letter]}"
        return replace(
            node,
            name=self._known[node.name],
            facts=tuple(fact for fact in node.facts if not _SIZE.fullmatch(fact)),
            children=tuple(self._node(child) for child in node.children),
        )


def pictures(scratch: Path) -> Iterator[tuple[str, Drawing]]:
    """The story of one table, then an upgraded one: names of pictures and drawings."""
    with frazil.connect(scratch / "warehouse") as catalog:
        table = catalog.create_table("shop.orders", SCHEMA, properties=PROPERTIES)
        names = Names()

        def shown(title: str, *, leaves: bool = True) -> Drawing:
            found = draw(table._handle, table.current_snapshot(), leaves=leaves)
            return names.drawing(found, title)

        for number in range(3):
            table.append(rows(number))
        yield "small-commits", shown("three appends")
        for number in range(3, 6):
            table.append(rows(number))
        yield "flush", shown("three more appends; the root took four files at most")
        table.delete("day = '2024-01-02'")
        yield "file-removed", shown("delete where day = '2024-01-02'")
        table.delete("id >= 210 and id < 215")
        yield "rows-deleted", shown("delete where id >= 210 and id < 215")
        table.rewrite_manifests()
        yield "rewritten", shown("rewrite manifests")
    yield "upgraded", _upgraded(scratch)


def _upgraded(scratch: Path) -> Drawing:
    """A v2 table of PyIceberg, upgraded, and then a file removed."""
    database = f"sqlite:///{scratch}/lake.db"
    theirs = SqlCatalog("default", uri=database, warehouse=f"file://{scratch}/lake")
    theirs.create_namespace("shop")
    made = theirs.create_table("shop.orders", SCHEMA)
    for number in range(3):
        made.append(rows(number))
    theirs.engine.dispose()
    with frazil.connect(database) as catalog:
        table = catalog.load_table("shop.orders")
        table.upgrade()
        table.delete("day = '2024-01-02'")
        found = draw(table._handle, table.current_snapshot())
        return Names().drawing(found, "upgraded from v2; delete where day = '2024-01-02'")


def main(folder: Path = FOLDER) -> None:
    """Write every picture."""
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as scratch:
        for name, drawing in pictures(Path(scratch)):
            (folder / f"tree-{name}.svg").write_text(f"{svg(drawing)}\n", encoding="utf-8")


if __name__ == "__main__":
    main(*map(Path, sys.argv[1:]))
