"""`frazil doctor`, and one line for what is not installed."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import frazil
from frazil.errors import Unsupported
from tests.cli.conftest import Run


@pytest.fixture
def without(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Hides packages, as if they were not installed."""
    real = importlib.util.find_spec

    def hide(*names: str) -> None:
        def found(name: str, package: str | None = None) -> Any:
            return None if name in names else real(name, package)

        monkeypatch.setattr("frazil.extras.find_spec", found)
        monkeypatch.setattr("frazil.cli.doctor.find_spec", found, raising=False)

    return hide


@pytest.fixture(autouse=True)
def _no_java(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "no-java"))


def by_name(rows: list[dict[str, str]]) -> dict[str, dict[str, str]]:
    return {row["what"]: row for row in rows}


def test_a_sound_installation(shop: Run, tmp_path: Path) -> None:
    done = shop("doctor", "--json")
    found = by_name(done.json)
    assert done.code == 0
    assert found["frazil"]["found"] == frazil.__version__
    assert found["catalog"]["found"] == "1 table, by the default"
    assert found["storage"]["state"] == "ok"
    assert [path.name for path in (tmp_path / "warehouse").iterdir() if "doctor" in path.name] == []


def test_java_is_found_or_asked_for(shop: Run, tmp_path: Path, monkeypatch: Any) -> None:
    assert "Java 17" in by_name(shop("doctor", "--json").json)["java"]["advice"]
    java = tmp_path / "jdk" / "bin" / "java"
    java.parent.mkdir(parents=True)
    for version, state in (("21.0.1", "ok"), ("11.0.2", "missing")):
        java.write_text(f"#!/bin/sh\necho 'openjdk version \"{version}\"' >&2\n")
        java.chmod(0o755)
        monkeypatch.setenv("JAVA_HOME", str(tmp_path / "jdk"))
        assert by_name(shop("doctor", "--json").json)["java"]["state"] == state


def test_what_is_not_installed_is_said_with_the_extra(shop: Run, without: Any) -> None:
    without("pyspark", "psycopg")
    found = by_name(shop("doctor", "--json").json)
    assert found["pyspark"]["advice"] == "for Spark and the demo: pip install 'frazil[spark]'"
    assert found["psycopg"]["state"] == "missing"


def test_a_warehouse_that_does_not_exist_is_not_created(run: Run, tmp_path: Path) -> None:
    done = run("doctor", "-c", "typo", "--json")
    assert done.code == 0
    assert "frazil init" in by_name(done.json)["catalog"]["advice"]
    assert not (tmp_path / "typo").exists()


def test_a_catalog_that_fails_is_exit_code_1(run: Run, tmp_path: Path) -> None:
    (tmp_path / "broken").mkdir()
    (tmp_path / "broken" / "catalog.db").write_bytes(b"not a database at all")
    done = run("doctor", "-c", "broken", "--json")
    assert done.code == 1
    assert by_name(done.json)["catalog"]["state"] == "failed"


def test_the_demo_names_its_extra_in_one_line(run: Run, without: Any) -> None:
    without("pyspark")
    done = run("demo")
    assert done.code == 8
    assert "pip install 'frazil[spark]'" in done.err
    assert len(done.err.strip().splitlines()) == 1


@pytest.mark.parametrize("package", ["pandas", "polars"])
def test_frames_name_their_extra(tmp_path: Path, without: Any, package: str) -> None:
    catalog = frazil.connect(tmp_path / "lake")
    table = catalog.create_table("a.b", pa.table({"id": [1]}))
    without(package)
    for rows in (table.scan(), table.changes(), catalog.sql("SELECT * FROM a.b")):
        with pytest.raises(Unsupported, match=rf"needs {package}.*frazil\[frames\]"):
            getattr(rows, f"to_{package}")()
