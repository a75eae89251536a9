"""The demo tells its story, leaves a sound warehouse and a report that needs nothing else."""

from __future__ import annotations

import html
import re
import shlex
from pathlib import Path

import pyarrow as pa
import pytest

import frazil
from frazil.errors import InvalidInput
from frazil_demo.race import Meter, orders
from frazil_demo.story import Story, _samples, run_demo
from tests.cli.conftest import Run


@pytest.fixture(scope="module")
def story(tmp_path_factory: pytest.TempPathFactory) -> Story:
    folder = tmp_path_factory.mktemp("demo")
    return run_demo(
        folder / "warehouse", report=folder / "report", with_spark=False, quiet=True, batches=30
    )


def test_both_engines_did_the_same_work(story: Story) -> None:
    ours, theirs = story.lanes
    assert [step.what for step in ours.steps] == [step.what for step in theirs.steps]
    assert len(ours.of("append")) == 30


def test_a_small_commit_writes_one_metadata_file_or_two_when_it_flushes(story: Story) -> None:
    ours, theirs = story.lanes
    files = [step.metadata_files for step in ours.of("append")]
    assert set(files) == {1, 2}
    assert files.count(2) == 1
    assert {step.metadata_files for step in theirs.of("append")} == {3}


def test_the_warehouse_is_sound_and_ready_to_play_with(story: Story) -> None:
    with frazil.connect(story.folder) as catalog:
        assert catalog.list_tables() == ["demo.orders", "demo.orders_v2"]
        for name in catalog.list_tables():
            assert catalog.load_table(name).check(deep=True).ok
        rows = catalog.load_table("demo.orders").scan().to_arrow()
        upgraded = catalog.load_table("demo.orders_v2").scan("order_id != 77").to_arrow()
    assert rows.num_rows == 30 * 200 - 1 + 50
    assert sorted(rows["order_id"].to_pylist()) == sorted([*upgraded["order_id"].to_pylist(), 77])


def test_the_change_feed_counts_every_row(story: Story) -> None:
    assert {row["change"]: row["rows"] for row in story.feed} == {
        "delete": 1,
        "update_preimage": 50,
        "update_postimage": 50,
        "insert": 50,
    }


def test_the_query_reads_less_than_the_table(story: Story) -> None:
    assert story.plan is not None
    assert 0 < story.plan.files < 30


def test_the_report_tells_what_the_terminal_told(story: Story) -> None:
    page = story.report.read_text(encoding="utf-8")
    assert list(story.chapters) == [
        "1. Small commits",
        "2. Deletes and updates",
        "3. A query that skips files",
        "4. The change feed",
        "5. Upgrade in place",
    ]
    for title, text in story.chapters.items():
        assert f"<h2>{title}</h2>" in page
        assert html.escape(text.splitlines()[0]) in page
    assert page.index("<h2>To remember</h2>") > page.index("5. Upgrade in place")
    assert page.count("<li>") == len(story.lessons) == 5


def test_the_report_fetches_nothing(story: Story) -> None:
    page = story.report.read_text()
    assert page.count("<svg") >= 3 + len(story.pictures)
    assert "<script" not in page
    links = re.findall(r"(?:src|href)=\"([^\"]*)\"|url\(", page)
    assert links == []


def test_the_demo_empties_only_what_a_demo_made(story: Story, tmp_path: Path) -> None:
    (tmp_path / "mine.txt").write_text("precious")
    with pytest.raises(InvalidInput, match="not empty"):
        run_demo(tmp_path, report=tmp_path / "report", with_spark=False, quiet=True, batches=1)
    assert (tmp_path / "mine.txt").read_text() == "precious"


def test_the_command_prints_its_findings_as_json(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    def short(folder: Path, **options: object) -> Story:
        assert options["with_spark"] is False
        return Story(folder=folder, report=Path("demo-report/index.html"))

    monkeypatch.setattr("frazil_demo.story.run_demo", short)
    done = run("demo", "--no-spark", "--json")
    assert done.json["report"] == "demo-report/index.html"


def test_a_meter_counts_new_files(tmp_path: Path) -> None:
    (tmp_path / "metadata").mkdir()
    (tmp_path / "metadata" / "old").write_text("x")
    meter = Meter("any", tmp_path)

    def work() -> None:
        (tmp_path / "metadata" / "root").write_text("abc")
        (tmp_path / "data.parquet").write_text("12345")

    step = meter.run("append", work)
    assert (step.metadata_files, step.metadata_bytes, step.data_bytes) == (1, 3, 5)


def test_batches_follow_each_other() -> None:
    first, second = orders(0, rows=10), orders(1, rows=10)
    assert first["order_id"].to_pylist() == list(range(10))
    assert second["order_id"].to_pylist() == list(range(10, 20))
    assert orders(1, rows=10).equals(second)


def test_the_demo_says_what_to_remember(story: Story) -> None:
    assert len(story.lessons) == 5
    page = story.report.read_text()
    assert page.rindex("To remember") > page.rindex("<h2>5. Upgrade in place")
    assert all(text in page for text in story.lessons)
    for letter in "RDM":
        assert f"<b>{letter}</b>" in page


def test_an_update_is_in_the_sample_of_the_change_feed() -> None:
    kinds = ["insert", "update_preimage", "update_preimage", "update_postimage", "delete"]
    feed = pa.table({"_change_type": kinds, "order_id": [9, 1, 2, 1, 5]})
    shown = [(row["_change_type"], row["order_id"]) for row in _samples(feed)]
    assert shown == [
        ("delete", 5),
        ("update_preimage", 1),
        ("update_postimage", 1),
        ("insert", 9),
    ]


def test_the_commands_that_the_demo_suggests_work(story: Story, run: Run) -> None:
    lines = [line.strip() for line in str(story).splitlines() if line.startswith("  frazil ")]
    answering = [line for line in lines if not line.startswith("frazil explore ")]  # runs on
    assert (len(lines), len(answering)) == (4, 3)
    for line in answering:
        done = run(*shlex.split(line)[1:])
        assert done.code == 0, (line, done.err)
        assert done.out
