"""Statements that are the first one of a new process: what they need of DuckDB's package is there.

A query that only reads tables does with DuckDB's compiled module. What others need is loaded when
they come, which no test sees whose process has loaded it before.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pytest

import frazil

COMPILED_ONLY = {
    "len(q('SELECT a, b FROM s.t WHERE a > 0'))": 2,
    "'one' in repr(c.sql('SELECT * FROM s.t'))": True,
    "c.sql('SELECT a FROM s.t').to_reader().read_all().num_rows": 3,
    "q('SELECT a FROM s.gone ORDER BY a')": [{"a": 1}],
    "len(q('SELECT x.b FROM s.t x JOIN s.gone y USING (a)'))": 1,
    "q('SELECT a FROM s.t WHERE b = ?', ['one'])": [{"a": 1}],
    "q('SELECT a FROM s.t WHERE a < 1 OR upper(b) = $b', {'b': 'TWO'})": [{"a": 0}, {"a": 2}],
    "q('SELECT count(*) AS n FROM s.t')": [{"n": 3}],
    "problem('SELECT nope FROM s.t')": True,
}
WITH_PYTHON = {
    "int(q('SELECT sum(a) AS n FROM s.t')[0]['n'])": 3,
    "c.sql('SELECT a FROM s.t').schema.names": ["a"],
    "c.sql('SELECT a FROM s.t ORDER BY a').to_duckdb().fetchall()": [(0,), (1,), (2,)],
    "q('SELECT * FROM f', tables={'f': pa.table({'x': [1]})})": [{"x": 1}],
    "len(q('SELECT * FROM s.t.files'))": 1,
    "len(q(\"SELECT * FROM table_changes('s.t')\"))": 3,
    "t.scan().to_duckdb().aggregate('count(*)').fetchall()": [(3,)],
}
OTHERS = {
    "len(q('SELECT * FROM s.v'))": 1,
    "len(q('EXPLAIN SELECT * FROM s.t'))": 2,
    "q('INSERT INTO s.t VALUES (9, NULL)') and len(q('SELECT * FROM s.t'))": 4,
    "q('CREATE TABLE s.n AS SELECT * FROM s.t') and len(q('SELECT * FROM s.n'))": 3,
    "q(\"UPDATE s.t SET b = upper(b) WHERE a = 1\") and q('SELECT b FROM s.t WHERE a = 1')": [
        {"b": "ONE"}
    ],
    "q('DELETE FROM s.t WHERE a IN (SELECT a FROM s.gone)') and len(q('SELECT * FROM s.t'))": 2,
    "q('MERGE INTO s.t USING s.gone g ON t.a = g.a WHEN MATCHED THEN DELETE') "
    "and len(q('SELECT * FROM s.t'))": 2,
    "t.delete('a % 2 = 1 and b = lower(b)').rows_removed": 1,
    "t.update({'b': 'upper(b)'}, 'a = 1').rows_updated": 1,
}
CODE = """
import sys, frazil, pyarrow as pa
def q(*arguments, **named):
    return c.sql(*arguments, **named).to_arrow().to_pylist()
def problem(text):
    try:
        q(text)
    except frazil.InvalidInput as error:
        return "nope" in str(error)
c = frazil.connect(sys.argv[1])
t = c.load_table("s.t")
answer = {work}
print(repr((answer, "duckdb" in sys.modules)))
"""


@pytest.fixture
def warehouse(tmp_path: Path) -> Path:
    with frazil.connect(tmp_path / "warehouse") as catalog:
        rows = pa.table({"a": [0, 1, 2], "b": ["zero", "one", "two"]})
        catalog.create_table("s.t", rows.schema).append(rows)
        gone = catalog.create_table("s.gone", rows.schema)
        gone.append(rows)
        gone.delete("a = 0 or a = 2")
        catalog.sql("CREATE VIEW s.v AS SELECT * FROM s.t WHERE a = 2")
    return tmp_path / "warehouse"


def answered(warehouse: Path, work: str) -> tuple[object, bool]:
    """What a new process answers, and whether it has loaded the Python part of DuckDB's package."""
    command = [sys.executable, "-c", CODE.replace("{work}", work), str(warehouse)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)
    assert done.returncode == 0, done.stderr
    answer, has_python = eval(done.stdout.splitlines()[-1])
    return answer, has_python


@pytest.mark.parametrize("work", COMPILED_ONLY)
def test_a_query_of_tables_does_with_the_compiled_module(warehouse: Path, work: str) -> None:
    assert answered(warehouse, work) == (COMPILED_ONLY[work], False)


def test_a_version_of_duckdb_that_was_not_tried_is_read_by_its_relations(warehouse: Path) -> None:
    answers = ", ".join(COMPILED_ONLY)
    tomorrow = f"(setattr(__import__('_duckdb'), '__version__', '2.9.0'), [{answers}])[1]"
    assert answered(warehouse, tomorrow) == (list(COMPILED_ONLY.values()), True)


@pytest.mark.parametrize("work", WITH_PYTHON)
def test_what_needs_relations_or_arrow_data_loads_the_package(warehouse: Path, work: str) -> None:
    assert answered(warehouse, work) == (WITH_PYTHON[work], True)


@pytest.mark.parametrize("work", OTHERS)
def test_other_statements_are_carried_out_by_a_new_process(warehouse: Path, work: str) -> None:
    assert answered(warehouse, work)[0] == OTHERS[work]
