"""Statistics of expressions such as `lower(name)`: declared, collected, used, and let go."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pytest

import frazil
from frazil.errors import InvalidInput, Unsupported
from frazil.format.metadata.derived import DerivedColumn
from frazil.iceberg.transforms import UnknownTransform

SCHEMA = pa.schema(
    [
        pa.field("id", pa.int64()),
        pa.field("name", pa.string()),
        pa.field("doc", pa.string()),
        pa.field("home", pa.struct([pa.field("city", pa.string())])),
    ]
)
FILES = 12


def rows(number: int) -> pa.Table:
    """Two rows with a name that no other file has, in two spellings."""
    document = json.dumps({"id": f"key{number}"})
    return pa.Table.from_pylist(
        [
            {"id": number, "name": f"NAME{number:02}", "doc": document, "home": {"city": "Åbo"}},
            {"id": -number, "name": f"name{number:02}", "doc": document},
        ],
        schema=SCHEMA,
    )


@pytest.fixture
def people(catalog: frazil.Catalog) -> frazil.Table:
    table = catalog.create_table(
        "shop.people",
        SCHEMA,
        expressions=[
            "lower(name)",
            "json_extract_string(doc, '$.id')",
            "id % 3",
            "upper(home.city)",
        ],
    )
    for number in range(FILES):
        table.append(rows(number))
    return table


def files_left(table: frazil.Table, where: str) -> int:
    return table.scan(where).plan().files.num_rows


def ids(table: frazil.Table, where: str) -> list[int]:
    return sorted(table.scan(where).to_arrow().column("id").to_pylist())


def sql_expressions(table: frazil.Table) -> list[DerivedColumn]:
    return [column for column in table.metadata.expressions if str(column.transform) == "sql"]


def test_a_table_tells_its_expressions(people: frazil.Table) -> None:
    assert people.expressions == (
        "lower(name)",
        "json_extract_string(doc, '$.id')",
        "(id % 3)",
        "upper(home.city)",
    )


@pytest.mark.parametrize(
    ("where", "left"),
    [
        ("lower(name) = 'name07'", 1),
        ("LOWER( \"name\" ) = 'name07'", 1),
        ("'name07' = lower(name)", 1),
        ("lower(name) IN ('name03', 'name05')", 2),
        ("lower(name) BETWEEN 'name03' AND 'name05'", 3),
        ("lower(name) LIKE 'name1%'", 2),
        ("lower(name) > 'name09'", 2),
        ("lower(name) IS NULL", 0),
        ("lower(name) = 'name07' OR doc ->> '$.id' = 'key4'", 2),
        ("lower(name) = 'name07' AND id > 100", 0),
        ("doc ->> '$.id' = 'key4'", 1),
        ("json_extract_string(doc, '$.id') = 'key4'", 1),
        ("id % 3 = 2", 4),
        ("upper(home.city) = 'ÅBO'", FILES),
        ("upper(home.city) = 'Turku'", 0),
        # other trees: nothing is known of them
        ("upper(name) = 'NAME07'", FILES),
        ("json_extract_string(doc, '$.other') = 'key4'", FILES),
        ("id % 4 = 2", FILES),
        ("lower(doc) = 'x'", FILES),
        ("NOT lower(name) = 'name07'", FILES),
    ],
)
def test_conditions_that_contain_an_expression_prune(
    people: frazil.Table, where: str, left: int
) -> None:
    assert files_left(people, where) == left
    plain = [row for number in range(FILES) for row in rows(number).to_pylist()]
    data = people.to_arrow()
    assert data.num_rows == len(plain)
    import duckdb

    relation = duckdb.from_arrow(data)
    expected = sorted(row[0] for row in relation.filter(where).project("id").fetchall())
    assert ids(people, where) == expected


def test_names_that_are_words_of_sql_are_quoted(catalog: frazil.Catalog) -> None:
    schema = pa.schema([pa.field("order", pa.string())])
    table = catalog.create_table("shop.words", schema, expressions=['lower("order")'])
    assert list(table.expressions) == ['lower("order")']
    table.set_expressions([*table.expressions, 'upper("order")'])
    assert list(table.expressions) == ['lower("order")', 'upper("order")']


def test_the_report_names_derived_columns(people: frazil.Table) -> None:
    report = people.scan("lower(name) = 'name07'").explain()
    assert report.root.pruned_by_derived == FILES - 1
    assert report.filter == "lower(name) = 'name07'"


def test_sql_prunes_and_deletes_by_expressions(
    people: frazil.Table, catalog: frazil.Catalog
) -> None:
    found = catalog.sql("SELECT id FROM shop.people p WHERE lower(p.name) = 'name04'").to_arrow()
    assert sorted(found.column(0).to_pylist()) == [-4, 4]
    text = str(catalog.sql("EXPLAIN SELECT * FROM shop.people WHERE lower(name) = 'name04'"))
    assert "11 pruned by derived columns" in text
    catalog.sql("DELETE FROM shop.people WHERE lower(name) = 'name04'")
    people.refresh()
    assert people.scan().count() == 2 * FILES - 2
    people.update({"name": frazil.expr("upper(name)")}, where="lower(name) = 'name05'")
    assert ids(people, "name = 'NAME05'") == [-5, 5]


def test_leaves_are_pruned_by_their_aggregates(catalog: frazil.Catalog) -> None:
    table = catalog.create_table(
        "shop.many",
        SCHEMA,
        expressions=["lower(name)"],
        properties={"write.root.max-data-entries": "4"},
    )
    for number in range(FILES):
        table.append(rows(number))
    table.rewrite_manifests()
    report = table.scan("lower(name) = 'name99'").plan().report
    assert report.leaves.manifests_read == 0
    assert files_left(table, "lower(name) = 'name01'") == 1
    table.compact(rewrite_all=True)
    assert files_left(table, "lower(name) = 'name99'") == 0
    assert ids(table, "lower(name) = 'name01'") == [-1, 1]


def test_renaming_a_column_keeps_its_statistics(people: frazil.Table) -> None:
    with people.evolve_schema() as columns:
        columns.rename_column("name", "Full Name")
    assert people.expressions[0] == 'lower("Full Name")'
    assert files_left(people, "lower(\"Full Name\") = 'name07'") == 1
    people.append(rows(50).rename_columns(["id", "Full Name", "doc", "home"]))
    assert files_left(people, "lower(\"Full Name\") = 'name50'") == 1


def test_a_column_of_an_expression_cannot_go_or_change(people: frazil.Table) -> None:
    with (
        pytest.raises(InvalidInput, match=r"'name' is dropped.*lower\(name\)"),
        people.evolve_schema() as columns,
    ):
        columns.drop_column("name")
    people.set_expressions(["lower(name)"])
    with people.evolve_schema() as columns:
        columns.drop_column("doc")
    assert people.expressions == ("lower(name)",)


def test_a_column_of_an_expression_keeps_its_type(catalog: frazil.Catalog) -> None:
    schema = pa.schema([pa.field("price", pa.float32())])
    table = catalog.create_table("shop.prices", schema, expressions=["CAST(price AS VARCHAR)"])
    table.append(pa.table({"price": pa.array([0.1], pa.float32())}))
    with (
        pytest.raises(InvalidInput, match="becomes double"),
        table.evolve_schema() as columns,
    ):
        columns.update_column("price", "double")
    table.set_expressions([])
    with table.evolve_schema() as columns:
        columns.update_column("price", "double")
    table.set_expressions(["CAST(price AS VARCHAR)"])
    # What was text of a float is none of a double: the file is read.
    assert table.scan("CAST(price AS VARCHAR) = '0.10000000149011612'").count() == 1


def test_ids_are_not_given_again(people: frazil.Table) -> None:
    before = {int(column.expr_id) for column in sql_expressions(people)}
    people.set_expressions([])
    assert people.expressions == ()
    people.set_expressions(["upper(name)"])
    (column,) = sql_expressions(people)
    assert int(column.expr_id) == max(before) + 1
    assert files_left(people, "upper(name) = 'NAME07'") == FILES
    with people.evolve_partitions() as fields:
        fields.add("bucket[4](id)")
    numbers = [int(column.expr_id) for column in people.metadata.expressions]
    assert sorted(numbers) == [max(before) + 1, max(before) + 2]


def test_an_expression_that_stays_keeps_its_id(people: frazil.Table) -> None:
    people.set_expressions(["id + 1", "lower( NAME )"])
    assert files_left(people, "lower(name) = 'name07'") == 1
    assert people.expressions == ("(id + 1)", "lower(name)")


def test_files_without_the_statistics_are_read(people: frazil.Table) -> None:
    people.set_expressions(["lower(name)", "length(name)"])
    people.append(rows(70))
    assert files_left(people, "length(name) = 99") == FILES
    assert ids(people, "length(name) = 6 AND id = 70") == [70]


def test_a_row_that_an_expression_fails_on_leaves_its_file_unjudged(
    catalog: frazil.Catalog,
) -> None:
    schema = pa.schema([pa.field("text", pa.string())])
    table = catalog.create_table("shop.texts", schema, expressions=["CAST(text AS INTEGER)"])
    table.append(pa.table({"text": ["1", "2"]}))
    table.append(pa.table({"text": ["3", "none"]}))
    where = "CAST(text AS INTEGER) = 7"
    assert files_left(table, where) == 1
    with pytest.raises(frazil.FrazilError, match="none"):
        table.scan(where).to_arrow()


def test_replacing_a_table_replaces_its_expressions(
    people: frazil.Table, catalog: frazil.Catalog
) -> None:
    schema = pa.schema([pa.field("word", pa.string())])
    table = catalog.create_table("shop.people", schema, expressions=["upper(word)"], replace=True)
    assert table.expressions == ("upper(word)",)
    table = catalog.create_table("shop.people", schema, replace=True)
    assert table.expressions == ()


def test_metadata_keeps_expressions_and_published_metadata_has_none(
    people: frazil.Table, tmp_path: Path
) -> None:
    document = json.loads(Path(people.export().removeprefix("file://")).read_text())
    ids = [column["expr-id"] for column in document["expressions"]]
    assert document["expressions"][0] == {
        "expr-id": ids[0],
        "expr": {
            "source-ids": [2],
            "transform": "sql",
            "name": f"expression_{ids[0]}",
            "sql": "lower($1)",
            "dialect": "duckdb",
            "type": "string",
        },
    }
    assert document["last-expr-id"] == max(ids)
    from frazil.format.metadata.metadata_json import dumps, loads

    again, history = loads(json.dumps(document).encode(), path="m.json")
    assert list(again.expressions) == list(people.metadata.expressions)
    assert json.loads(dumps(again, history))["expressions"] == document["expressions"]
    published = people.publish(format_version=3).metadata_location
    text = Path(published.removeprefix("file://")).read_text()
    assert "expressions" not in json.loads(text)
    assert "last-expr-id" not in json.loads(text)


def test_other_dialects_are_kept_and_not_used(people: frazil.Table) -> None:
    document = json.loads(Path(people.export().removeprefix("file://")).read_text())
    document["expressions"][0]["expr"]["dialect"] = "other"
    from frazil.format.metadata.metadata_json import dumps, loads

    metadata, history = loads(json.dumps(document).encode(), path="m.json")
    assert not metadata.expressions[0].name.startswith("lower")
    assert isinstance(metadata.expressions[0].transform, UnknownTransform)
    assert json.loads(dumps(metadata, history))["expressions"] == document["expressions"]


@pytest.mark.parametrize(
    ("text", "error", "message"),
    [
        ("random() + id", Unsupported, "random"),
        ("now()", Unsupported, "now"),
        ("sum(id)", Unsupported, "sum"),
        ("hash(name)", Unsupported, "hash"),
        ("row_number() OVER ()", Unsupported, "window"),
        ("(SELECT 1)", Unsupported, "subquery"),
        ("list_transform([id], x -> x + 1)[1]", Unsupported, "lambda"),
        ("to_timestamp(id)", Unsupported, "TIME ZONE"),
        ("CAST(name AS TIMESTAMPTZ)", Unsupported, "TIME ZONE"),
        ("json_extract(doc, '$.id')", Unsupported, "json_extract_string"),
        ("home", InvalidInput, "is a column"),
        ("lower('x')", InvalidInput, "no column"),
        ("lower(nme)", InvalidInput, "Did you mean"),
        ("lower(name", InvalidInput, "syntax"),
        ("lower(id, name)", InvalidInput, "lower"),
    ],
)
def test_what_has_no_lasting_value_is_refused(
    people: frazil.Table, text: str, error: type[Exception], message: str
) -> None:
    before = people.expressions
    with pytest.raises(error, match=message):
        people.set_expressions([text])
    assert people.expressions == before


def test_columns_in_time_zones_are_refused(catalog: frazil.Catalog) -> None:
    schema = pa.schema([pa.field("seen", pa.timestamp("us", "UTC"))])
    with pytest.raises(Unsupported, match="time zone"):
        catalog.create_table("shop.seen", schema, expressions=["year(seen)"])


def test_an_expression_is_given_once_and_in_a_list(people: frazil.Table) -> None:
    with pytest.raises(InvalidInput, match="twice"):
        people.set_expressions(["lower(name)", "LOWER(name)"])
    with pytest.raises(InvalidInput, match="list"):
        people.set_expressions("lower(name)")
