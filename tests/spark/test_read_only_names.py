"""Names that show a table's metadata, changes or past states can be read and never changed."""

from __future__ import annotations

from typing import Any

import pytest

import frazil
from tests.spark.shop import content, row

pytestmark = pytest.mark.spark

T = "frazil.shop.orders"
WHOLE = {id: row(id) for id in range(90)}
MERGE = "USING (SELECT 1L AS id) s ON true WHEN MATCHED THEN DELETE"


@pytest.fixture
def states(spark: Any, table: frazil.Table) -> list[str]:
    """Names of everything that is not the table's own rows now."""
    table.tag("monday")
    snapshot = table.current_snapshot()
    assert snapshot is not None
    first = snapshot.snapshot_id
    frame = spark.read.option("versionAsOf", str(first)).table(T)
    frame.createOrReplaceTempView("past")
    frazil.spark.table(table).createOrReplaceTempView("made")
    names = ("files", "snapshots", "changes", "tag_monday", f"snapshot_id_{first}", "history")
    return [*(f"{T}.{name}" for name in names), "past", "made"]


@pytest.mark.parametrize(
    "text",
    [
        "DELETE FROM {0}",
        "DELETE FROM {0} WHERE true",
        "TRUNCATE TABLE {0}",
        "DROP TABLE {0}",
        "MERGE INTO {0} t " + MERGE,
        "INSERT INTO {0} SELECT * FROM {0}",
        "INSERT OVERWRITE {0} SELECT * FROM {0}",
        "ALTER TABLE {0} SET TBLPROPERTIES ('a' = 'b')",
        "CREATE OR REPLACE TABLE {0} AS SELECT 1 AS x",
    ],
)
def test_a_change_is_refused_and_changes_nothing(
    spark: Any, table: frazil.Table, states: list[str], text: str
) -> None:
    for name in states:
        if "TABLE" in text and name in ("past", "made"):
            continue  # views of the session: Spark's own business
        with pytest.raises(Exception) as caught:
            spark.sql(text.format(name))
        told = str(caught.value)
        assert "KeyError" not in told
        assert "`unknown`" not in told
        assert "\tat " not in told
    assert content(table) == WHOLE
    assert table.refresh().metadata.properties.get("a") is None


def test_an_update_is_refused_by_the_name_of_the_table(
    spark: Any, table: frazil.Table, states: list[str]
) -> None:
    with pytest.raises(Exception, match=r"shop\.orders\.files shows metadata.* can only be read"):
        spark.sql(f"UPDATE {T}.files SET record_count = 0")
    with pytest.raises(Exception, match=r"past state of shop\.orders can only be read"):
        spark.sql(f"UPDATE {T}.tag_monday SET price = 0")
    with pytest.raises(Exception, match=r"past state of shop\.orders can only be read"):
        spark.sql("UPDATE past SET price = 0")
    with pytest.raises(Exception, match=r"`shop`\.`orders` does not support UPDATE"):
        spark.sql("UPDATE made SET price = 0")
    assert content(table) == WHOLE


def test_names_of_states_take_no_second_state(
    spark: Any, table: frazil.Table, states: list[str]
) -> None:
    snapshot = table.current_snapshot()
    assert snapshot is not None
    for part in ("tag_monday", "changes", f"snapshot_id_{snapshot.snapshot_id}"):
        with pytest.raises(Exception, match="names what to read"):
            spark.sql(f"SELECT * FROM {T}.{part} VERSION AS OF {snapshot.snapshot_id}").collect()


def test_a_branch_can_be_changed_and_not_dropped_as_a_table(
    spark: Any, table: frazil.Table
) -> None:
    table.branch("audit", create=True)
    spark.sql(f"DELETE FROM {T}.branch_audit WHERE id >= 5")
    spark.sql(f"UPDATE {T}.branch_audit SET price = 7D WHERE id = 1")
    assert content(table) == WHOLE
    on_branch = table.refresh().branch("audit")
    assert {each["id"] for each in on_branch.scan().to_pylist()} == set(range(5))
    with pytest.raises(Exception, match=r"ALTER TABLE shop\.orders DROP BRANCH audit"):
        spark.sql(f"DROP TABLE {T}.branch_audit")


def test_a_view_of_the_table_itself_can_be_changed(spark: Any, table: frazil.Table) -> None:
    spark.table(T).createOrReplaceTempView("now")
    spark.sql("DELETE FROM now WHERE id < 88")
    assert set(content(table)) == {88, 89}


def test_conditions_may_name_metadata_columns(spark: Any, table: frazil.Table) -> None:
    files = {each["_file"] for each in table.scan(columns=["_file"]).to_pylist()}
    gone = sorted(files)[0]
    left = {
        each["id"]
        for each in table.scan(columns=["id", "_file"]).to_pylist()
        if each["_file"] != gone
    }
    spark.sql(f"DELETE FROM {T} WHERE _file = '{gone}'")
    assert set(content(table)) == left
