"""The demo tells its story, leaves a sound warehouse and a report that needs nothing else."""

from __future__ import annotations

import html
import importlib.util
import re
import shlex
import subprocess
import sys
import tomllib
from pathlib import Path
from urllib.request import urlopen

import pyarrow as pa
import pytest

import frazil
from frazil.errors import InvalidInput
from frazil_demo.race import Meter, orders
from frazil_demo.story import Story, _samples, run_demo
from tests.cli.conftest import Run
from tests.support.project import ROOT


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
    assert page.index("<h2>To remember</h2>") < page.index("1. Small commits")
    assert page.count("<li>") == len(story.lessons) == 5


def test_the_report_begins_with_its_summary_in_pictures(story: Story) -> None:
    page = story.report.read_text(encoding="utf-8")
    summary = page[: page.index("<h2>1. Small commits")]
    assert summary.count('class="tile"') == 5
    ours, theirs = story.lanes
    for lane in (ours, theirs):
        files = sum(step.metadata_files for step in lane.of("append"))
        assert f"</i>{files}</span>" in summary


def test_the_report_has_a_dark_page(story: Story) -> None:
    page = story.report.read_text(encoding="utf-8")
    style = page[page.index("<style>") : page.index("</style>")]
    assert "prefers-color-scheme: dark" in style
    # Colours outside of the two palettes would stay as they are on a dark page.
    rules = style[style.index("body {") :]
    assert re.findall(r"(?<!=\")#[0-9a-f]{6}", rules) == []


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
    lines = _suggested(story)
    answering = [words for words in lines if words[1] != "explore"]
    assert (len(lines), len(answering)) == (4, 3)
    for words in answering:
        done = run(*words[1:])
        assert done.code == 0, (words, done.err)
        assert done.out


def test_the_explorer_that_the_demo_suggests_answers(story: Story) -> None:
    (words,) = [words for words in _suggested(story) if words[1] == "explore"]
    program = [sys.executable, "-c", "from frazil.cli import main; main()"]
    process = subprocess.Popen(
        [*program, *words[1:], "--no-open"], stdout=subprocess.PIPE, text=True
    )
    try:
        assert process.stdout is not None
        address = process.stdout.readline().strip()
        with urlopen(address.partition("#")[0], timeout=60) as page:
            assert page.status == 200
            assert b"<title>" in page.read()
    finally:
        process.terminate()
        process.wait(60)


def test_commands_name_the_program_that_a_terminal_finds(
    story: Story, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = tmp_path / ".venv" / "bin" / "frazil"
    program.parent.mkdir(parents=True)
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(program.with_name("python")))
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PATH", "/nowhere")
    assert {words[0] for words in _suggested(story)} == {".venv/bin/frazil"}
    monkeypatch.setenv("PATH", str(program.parent))
    assert {words[0] for words in _suggested(story)} == {"frazil"}


def test_what_the_demo_installs_has_what_its_commands_need() -> None:
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"][
        "optional-dependencies"
    ]
    (own, *others) = extras["demo"]
    assert own == "frazil[spark,serve,frames,objects]"
    assert others


def _suggested(story: Story) -> list[list[str]]:
    """The commands at the end of what the demo prints."""
    lines = [line for line in str(story).splitlines() if line.startswith("  ") and " -c " in line]
    return [shlex.split(line) for line in lines]


def test_a_demo_without_its_packages_is_one_line(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    found = importlib.util.find_spec
    monkeypatch.setattr(
        "frazil.extras.find_spec", lambda name: None if name == "pyiceberg_core" else found(name)
    )
    done = run("demo", "--no-spark")
    assert done.code != 0
    assert "pip install 'frazil[demo]'" in done.err
    assert len(done.err.splitlines()) == 1
