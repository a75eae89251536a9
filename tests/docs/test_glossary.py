"""The verbs of the glossary are those of Python, Spark, SQL and the command line."""

from __future__ import annotations

import re

import frazil
import frazil.spark
import frazil.spark.jobs
from frazil.sql.run.procedures import PROCEDURES
from frazil.table import Catalog, Table
from tests.cli.test_command_line import COMMANDS
from tests.docs.pages import DOCS, ROOT

PLACES = {
    "table": Table,
    "catalog": Catalog,
    "spark": frazil.spark,
    "spark.jobs": frazil.spark.jobs,
}


def test_every_name_is_in_its_module() -> None:
    page = (DOCS / "glossary.md").read_text(encoding="utf-8")
    table = page.partition("## Names in the code")[2].partition("## Verbs")[0]
    rows = [line.split("|")[1:3] for line in table.splitlines() if line.startswith("| `")]
    assert len(rows) > 15
    missing = []
    for names, files in rows:
        sources = [
            (ROOT / "src" / "frazil" / file).read_text(encoding="utf-8")
            for file in re.findall(r"`([^`]+)`", files)
        ]
        for name in re.findall(r"`([^`]+)`", names):
            defined = re.compile(rf"^(class|def) {name}\b", flags=re.MULTILINE)
            is_module = f"/{name}.py`" in files
            if not is_module and not any(defined.search(source) for source in sources):
                missing.append(name)
    assert missing == []


def test_every_verb_is_there() -> None:
    page = (DOCS / "glossary.md").read_text(encoding="utf-8")
    lines = [line.split("|")[1:-1] for line in page[page.index("## Verbs") :].splitlines()]
    rows = [[cell.strip() for cell in cells] for cells in lines if len(cells) == 5][2:]
    assert len(rows) > 15
    missing = []
    for what, *calls, sql, command in rows:
        for call in calls:
            if call != "–":
                place, _, verb = call.strip("`").split("(")[0].rpartition(".")
                missing += [] if hasattr(PLACES[place], verb) else [(what, call)]
        named = re.fullmatch(r"`CALL system\.(\w+)`", sql)
        missing += [(what, sql)] if named and named[1] not in PROCEDURES else []
        missing += [(what, command)] if command.strip("`") not in {*COMMANDS, "–"} else []
    assert missing == []
