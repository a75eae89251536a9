"""`frazil demo`: a guided tour on a small web-shop dataset, explained while it runs.

Chapters run one after the other on real tables in a folder that is left to play with. Every number
printed was measured in this run. A report with plots is written at the end (`report`).
"""

from __future__ import annotations

import shutil
import sys
import time
import warnings
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
from rich.console import Console
from rich.table import Table as RichTable

import frazil
from frazil.cli.terminal import drawing, render
from frazil.cli.terminal.drawing import Drawing
from frazil.errors import InvalidInput
from frazil.scan.report import ScanReport
from frazil.table import Catalog, Table
from frazil.text_format import counted, size
from frazil_demo import race
from frazil_demo.race import Lane, Meter, orders, pyiceberg_table, summed

MARK = ".frazil-demo"
ROWS = 200
ADAPTS_EARLY = {"write.root.max-data-entries": "16", "write.leaf.target-entries": "32"}
GONE = "order_id = 4321"
_ORDER = {"delete": 0, "update_preimage": 1, "update_postimage": 2, "insert": 3}
QUERY = "ordered_at >= '2024-01-06T00:00:00Z' and ordered_at < '2024-01-07T00:00:00Z'"


@dataclass(slots=True, kw_only=True)
class Story:
    """What the demo found, chapter by chapter."""

    folder: Path
    report: Path
    lanes: tuple[Lane, ...] = ()
    pictures: dict[str, Drawing] = field(default_factory=dict)
    plan: ScanReport | None = None
    feed: list[dict[str, Any]] = field(default_factory=list)
    pipeline: list[str] = field(default_factory=list)
    upgrade: list[str] = field(default_factory=list)
    lessons: list[str] = field(default_factory=list)
    chapters: dict[str, str] = field(default_factory=dict)
    seconds: float = 0.0

    def to_dict(self) -> dict[str, Any]:
        """For JSON."""
        return {
            "warehouse": str(self.folder),
            "report": str(self.report),
            "work": {lane.engine: lane.to_dict() for lane in self.lanes},
            "plan": None if self.plan is None else self.plan.to_dict(),
            "changes": self.feed,
            "pipeline": self.pipeline,
            "upgrade": self.upgrade,
            "lessons": self.lessons,
            "seconds": round(self.seconds, 1),
        }

    def __str__(self) -> str:
        lessons = "".join(f"  {at}. {text}\n" for at, text in enumerate(self.lessons, start=1))
        program = _program()
        pipeline = self.folder / "pipeline" / "warehouse"
        more = f"  {program} tables -c {pipeline}\n" if self.pipeline else ""
        return (
            f"Done in {self.seconds:.0f} s. To remember:\n{lessons}\n"
            f"Open {self.report} in a browser, or explore what the demo left behind:\n"
            f"  {program} tables -c {self.folder}\n{more}"
            f"  {program} tree demo.orders -c {self.folder} --leaves\n"
            f'  {program} sql "SELECT country, sum(price) FROM demo.orders GROUP BY 1" '
            f"-c {self.folder}\n"
            f"See the tree prune and the commits land, in your browser:\n"
            f"  {program} explore demo.orders -c {self.folder}"
        )


def run_demo(
    folder: Path,
    *,
    report: Path = Path("demo-report"),
    with_spark: bool = True,
    quiet: bool = False,
    batches: int = 60,
) -> Story:
    """Tell the story; `quiet` says nothing while it runs."""
    from frazil_demo.report import write_report

    began = time.perf_counter()
    folder = _fresh(folder)
    story = Story(folder=folder, report=report / "index.html")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with frazil.connect(folder) as catalog:
            teller = _Teller(story, catalog, Console(quiet=quiet, highlight=False), batches)
            teller.small_commits()
            teller.row_level()
            teller.pruning()
            teller.change_feed()
            teller.upgrade()
            try:
                if with_spark:
                    teller.spark_pipeline()
            finally:
                write_report(story)
    story.seconds = time.perf_counter() - began
    return story


def _program() -> str:
    """How this Frazil is called from the terminal that runs the demo: by its name alone only if a
    search of PATH finds this installation."""
    installed = Path(sys.executable).parent / "frazil"
    on_path = shutil.which("frazil")
    if not installed.exists() or (on_path is not None and Path(on_path).samefile(installed)):
        return "frazil"
    here = Path.cwd()
    return str(installed.relative_to(here) if installed.is_relative_to(here) else installed)


def _fresh(folder: Path) -> Path:
    """An empty folder; one that an earlier demo made is emptied, any other is left alone."""
    folder = folder.resolve()
    if folder.exists() and any(folder.iterdir()):
        if not (folder / MARK).exists():
            raise InvalidInput(f"{folder} is not empty; name another folder with --to")
        shutil.rmtree(folder)
    folder.mkdir(parents=True, exist_ok=True)
    (folder / MARK).write_text("Made by `frazil demo`, which may empty this folder.\n")
    return folder


@dataclass(slots=True)
class _Teller:
    story: Story
    catalog: Catalog
    console: Console
    batches: int
    ours: Meter = field(init=False)
    theirs: Meter = field(init=False)
    table: Table = field(init=False)
    peer: Any = field(init=False)

    def small_commits(self) -> None:
        """Chapter 1: many small appends, and the tree that adapts to them."""
        self._chapter(
            "1. Small commits",
            f"A web shop writes {self.batches} batches of {ROWS} orders. Each batch is one commit: "
            "a new version of the table that readers see at once. We do the same work twice, with "
            "Frazil and with PyIceberg in today's format (version 2), and count what each writes.\n"
            "A table is data files plus metadata: small files that list the data files. In "
            "version 2 every commit writes three of them. Frazil writes one, the root, which "
            "lists recent data files itself. When the root is full, older entries move to a leaf. "
            "(Here that happens after 16 entries instead of 100, so that you can watch it.)",
        )
        self.table = self.catalog.create_table(
            "demo.orders",
            race.SCHEMA,
            partition_by=["day(ordered_at)"],
            properties=ADAPTS_EARLY,
        )
        self.peer = pyiceberg_table(self.story.folder, "demo.orders_v2", partition_by_day=True)
        self.ours = Meter("Frazil", self._folder("orders"))
        self.theirs = Meter("PyIceberg v2", self._folder("orders_v2"))
        for batch in range(self.batches):
            rows = orders(batch, rows=ROWS)
            self.ours.run("append", partial(self.table.append, rows))
            self.theirs.run("append", partial(self.peer.append, rows))
            if batch in (0, 2):
                self._draw(f"after {batch + 1} commits" if batch else "after the first commit")
        self._draw(f"after {self.batches} commits: older entries moved to leaves")
        self._compare("append", f"{self.batches} appends")
        self._remember(
            "append", "A small commit writes one metadata file, or two when the root is full"
        )

    def row_level(self) -> None:
        """Chapter 2: a delete and an upsert."""
        self._chapter(
            "2. Deletes and updates",
            "One order is deleted. Then 50 orders are corrected and 50 new ones arrive in one "
            "upsert. PyIceberg rewrites every data file that holds such a row. Frazil leaves the "
            "files alone and notes which rows are gone in a deletion vector, a small list of row "
            "positions.",
        )
        self.table.tag("before-corrections")
        corrections = _corrections(self.batches)
        for meter, table in ((self.ours, self.table), (self.theirs, self.peer)):
            meter.run("delete", partial(table.delete, GONE))
        self.ours.run("upsert", lambda: self.table.upsert(corrections, ["order_id"]))
        self.theirs.run("upsert", lambda: self.peer.upsert(corrections, ["order_id"]))
        self._draw("after the delete and the upsert: dead entries of a leaf, deletion vectors")
        self._compare("delete", "delete of one row")
        self._compare("upsert", "upsert of 100 rows")
        self._remember("upsert", "Changing a few rows writes those rows, not the files they are in")
        self.story.lanes = (self.ours.lane(), self.theirs.lane())

    def pruning(self) -> None:
        """Chapter 3: a query and what it did not read."""
        self._chapter(
            "3. A query that skips files",
            f"We ask for one day of orders:\n  {QUERY}\n"
            "The metadata holds the smallest and largest value of each column per file, so files "
            "that cannot match are never opened. The table below shows how many entries each level "
            "of the tree held and how many were left.",
        )
        with frazil.connect(self.story.folder) as fresh:  # nothing is cached
            scan = fresh.load_table("demo.orders").scan(QUERY)
            self.story.plan = scan.explain()
        self.console.print(str(self.story.plan), markup=False, soft_wrap=True)
        total = self.table.scan().count()
        self.console.print(f"{scan.count():,} of {total:,} rows match.")
        self._lesson("A query opens only the files that can match; the root rules out the rest.")

    def change_feed(self) -> None:
        """Chapter 4: what changed since the tag."""
        self._chapter(
            "4. The change feed",
            "Which rows changed since the tag before-corrections? Each root records what its "
            "commit changed, so Frazil reads one small file per commit and compares nothing. "
            "Without that, you would compare two full copies of the table. An updated row appears "
            "twice: as it was (preimage) and as it is now (postimage).",
        )
        feed = self.table.changes(since="before-corrections").to_arrow()
        counts = feed.group_by("_change_type").aggregate([([], "count_all")]).to_pylist()
        counts.sort(key=lambda row: _ORDER[row["_change_type"]])
        self.story.feed = [
            {"change": row["_change_type"], "rows": row["count_all"]} for row in counts
        ]
        self._rows(self.story.feed)
        columns = ["_change_type", "_row_id", "order_id", "status", "price"]
        self._rows(_samples(feed.select(columns)))
        self._lesson("The table itself records what changed, row by row, with stable row ids.")

    def upgrade(self) -> None:
        """Chapter 5: the v2 table becomes a Frazil table, and goes back."""
        self._chapter(
            "5. Upgrade in place",
            "The table that PyIceberg wrote is in the same catalog. We turn it into a Frazil table "
            "(version 4) without rewriting a single file, delete a row, and publish it again as "
            "version 2, so that today's engines can read it.",
        )
        taken = self.catalog.load_table("demo.orders_v2")
        rows = taken.scan().count()
        done = taken.upgrade()
        taken.delete("order_id = 77")
        self.story.pictures["the upgraded table after one delete"] = self._drawn(taken, limit=6)
        published = taken.publish(format_version=2)
        from pyiceberg.table import StaticTable

        seen = StaticTable.from_metadata(published.metadata_location).scan().count()
        self.story.upgrade = [
            *str(done).splitlines(),
            f"{rows:,} rows before and {taken.scan().count():,} after one delete; PyIceberg reads "
            f"{seen:,} from the published metadata",
        ]
        for line in self.story.upgrade:
            self.console.print(line, markup=False, soft_wrap=True)
        self._lesson(
            "Existing Iceberg tables move in without a copy, and can be read from outside."
        )

    def spark_pipeline(self) -> None:
        """Chapter 6: the pipeline on Spark."""
        from frazil.cli.spark_session import has_spark
        from frazil_demo.pipeline import pipeline_script, run_pipeline

        self._chapter(
            "6. The same on Spark",
            "Orders arrive as a stream of small files. Spark merges each file into the table "
            "exactly once, deletes and updates rows, compacts files, and reads the change feed.",
        )
        if not has_spark():
            self._say("Skipped: this needs PySpark; pip install 'frazil[spark]'.")
            return
        folder = self.story.folder / "pipeline"
        self.story.pipeline = run_pipeline(pipeline_script(), folder, self._say)
        with frazil.connect(folder / "warehouse") as catalog:
            table = catalog.load_table("shop.orders")
            title = "shop.orders, made by the pipeline on Spark"
            self.story.pictures[title] = self._drawn(table, limit=8)

    # Telling

    def _say(self, line: str) -> None:
        self.console.print(line, markup=False, soft_wrap=True)

    def _remember(self, what: str, lesson: str) -> None:
        """What one kind of work cost each engine, and what to take away from it."""
        ours, theirs = (summed(meter.lane().of(what)) for meter in (self.ours, self.theirs))
        self._say(
            f"Cost: Frazil wrote {counted(int(ours['metadata-files']), 'metadata file')} and "
            f"{size(int(ours['data-bytes']))} of data; PyIceberg wrote "
            f"{theirs['metadata-files']:.0f} and {size(int(theirs['data-bytes']))}."
        )
        self._lesson(f"{lesson}.")

    def _lesson(self, text: str) -> None:
        self.story.lessons.append(text)
        self._say(f"Remember: {text}")

    def _chapter(self, title: str, text: str) -> None:
        self.story.chapters[title] = text
        self.console.print()
        self.console.rule(f"[bold]{title}[/bold]", align="left")
        self.console.print(text, markup=False)
        self.console.print()

    def _draw(self, title: str) -> None:
        picture = self._drawn(self.table, limit=8)
        self.story.pictures[title] = picture
        self.console.print(f"[bold]{title}[/bold]")
        self.console.print(render.text(picture), markup=False, soft_wrap=True)
        self.console.print()

    def _drawn(self, table: Table, *, limit: int) -> Drawing:
        return drawing.draw(table._handle, table.current_snapshot(), limit=limit, columns=1)

    def _compare(self, what: str, title: str) -> None:
        rows = []
        for meter in (self.ours, self.theirs):
            cost = summed(meter.lane().of(what))
            rows.append(
                {
                    title: meter.engine,
                    "median ms": f"{cost['median-ms']:,.1f}",
                    "metadata files": cost["metadata-files"],
                    "metadata": size(int(cost["metadata-bytes"])),
                    "data": size(int(cost["data-bytes"])),
                }
            )
        self._rows(rows)

    def _rows(self, rows: list[dict[str, Any]]) -> None:
        if not rows:
            return
        table = RichTable(header_style="bold")
        for name in rows[0]:
            table.add_column(name, justify="left" if name == next(iter(rows[0])) else "right")
        for row in rows:
            table.add_row(*(str(value) for value in row.values()))
        self.console.print(table)

    def _folder(self, name: str) -> Path:
        return self.story.folder / "demo" / name


def _samples(feed: pa.Table) -> list[dict[str, Any]]:
    """A delete, an update as both its rows, and an insert."""
    rows = feed.to_pylist()
    first: dict[str, dict[str, Any]] = {}
    for row in rows:
        first.setdefault(row["_change_type"], row)
    before = first.get("update_preimage")
    for row in rows:
        is_after = row["_change_type"] == "update_postimage"
        if before is not None and is_after and row["order_id"] == before["order_id"]:
            first["update_postimage"] = row
            break
    return sorted(first.values(), key=lambda row: _ORDER[row["_change_type"]])


def _corrections(batches: int) -> pa.Table:
    """Fifty orders of one batch with a new status, and fifty that are new."""
    old = orders(batches // 2, rows=ROWS).slice(0, 50)
    new = orders(batches, rows=ROWS).slice(0, 50)
    at = old.schema.get_field_index("status")
    shipped = old.set_column(at, old.schema.field("status"), pa.array(["shipped"] * 50))
    return pa.concat_tables([shipped, new])
