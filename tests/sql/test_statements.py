"""Every statement of SQL, from files of statements with expected results."""

from __future__ import annotations

from pathlib import Path

import pytest

import frazil
from frazil.sql.output.display import cell
from tests.support.sqllogic import check_file

FILES = sorted(Path(__file__).parent.glob("*.test"))


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_statements_of_file(path: Path, tmp_path: Path) -> None:
    with frazil.connect(tmp_path / "warehouse") as catalog:
        session = catalog.session()

        def run(text: str) -> list[list[str]]:
            rows = session.sql(text).to_arrow()
            columns = [column.to_pylist() for column in rows.columns]
            return [[_line(value) for value in row] for row in zip(*columns, strict=True)]

        check_file(path, "duckdb", run)
        session.close()


def _line(value: object) -> str:
    return cell(value).replace("\n", "\\n")
