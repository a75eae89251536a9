"""A table of many files: what pypaimon lists is what is read and adopted here."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pyarrow.compute as pc
import pytest

from frazil.filter.text.filter_text import parse
from frazil.paimon import PaimonTable, adopt
from frazil.scan.plan import plan
from tests.interop.paimon.peers import PYPAIMON
from tests.interop.paimon.reading import handle_of
from tests.support.memory_catalog import MemoryCatalog
from tests.support.peer_process import write_samples

pytestmark = [pytest.mark.peers]

SCRIPT = Path(__file__).with_name("big_table.py")
FILES = 4_000


def test_all_files_are_listed_adopted_into_leaves_and_pruned(
    tmp_path: Path, catalog: MemoryCatalog
) -> None:
    python = str(PYPAIMON.ready().python)
    warehouse = str(tmp_path / "paimon")
    written, listing, log = tmp_path / "written", tmp_path / "listing.json", tmp_path / "log.txt"
    write = [python, str(SCRIPT), "write", warehouse, str(FILES), str(written)]
    write_samples(
        "pypaimon",
        write,
        complete=written,
        log=log,
        prepare=lambda: shutil.rmtree(warehouse, ignore_errors=True),
    )
    read = [python, str(SCRIPT), "list", warehouse, str(listing)]
    write_samples("pypaimon", read, complete=listing, log=log)
    peer = json.loads(listing.read_text())
    source = f"{warehouse}/db.db/big"
    names = PaimonTable.open(source).state().files["file_name"]
    assert names.length() == peer["files"] == FILES
    assert (pc.min(names).as_py(), pc.max(names).as_py()) == (peer["first"], peer["last"])

    adopt(catalog, "db.big", source, verify=False)
    handle = handle_of(catalog, "db.big")
    tip = handle.tip()
    reader = handle.reader()
    assert len(reader.tree(tip).leaves()) >= 1
    schema = handle.metadata.schema()
    for where, expected in (("day = 'd0007'", 4), ("id between 500 and 509", 1), ("id < 0", 0)):
        planned = plan(reader, tip, schema=schema, where=parse(where, schema))
        assert planned.table.num_rows == expected, where
