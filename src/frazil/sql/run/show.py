"""SHOW, DESCRIBE and EXPLAIN."""

from __future__ import annotations

import re
from collections.abc import Iterable
from fnmatch import translate
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from frazil.catalog.backend import view_text
from frazil.catalog.names import undotted
from frazil.errors import FrazilError, InvalidInput
from frazil.filter.text.quotes import literal, quoted
from frazil.filter.text.sql_values import type_text
from frazil.format.metadata.metadata import RefKind
from frazil.iceberg.partitioning import PartitionField
from frazil.iceberg.schema import Schema
from frazil.iceberg.transforms import (
    BucketTransform,
    IdentityTransform,
    JointBucketTransform,
    TruncateTransform,
)
from frazil.iceberg.types import BooleanType, IntegerType, LongType, NestedField, StringType
from frazil.parser.tokens import Part, Source, tokens
from frazil.rows.duckdb.duckdb_types import literal as value_text
from frazil.sql.bind.binding import Binder
from frazil.sql.bind.view_sql import stored_view
from frazil.sql.name_resolution import ResolvedTable, ResolvedView
from frazil.sql.output.plan_text import plan_text
from frazil.sql.output.query_result import Result
from frazil.sql.parse import statements as st
from frazil.table.table import Table

if TYPE_CHECKING:
    from frazil.iceberg.sorting import SortField, SortOrder
    from frazil.sql.run.execution import Execution

_PLAIN = re.compile(r"[a-z_][a-z0-9_]*")


def run(statement: st.Show | st.Describe | st.Explain, at: Execution) -> Result:
    """Carry out a statement."""
    if isinstance(statement, st.Describe):
        return _describe(statement, at)
    if isinstance(statement, st.Explain):
        return _explain(statement, at)
    start = 0 if statement.of is None else statement.of.start
    with at.place(start):
        match statement.what:
            case "tables" | "views":
                return _list(statement, at)
            case "namespaces":
                parent = () if statement.of is None else statement.of.parts
                names = at.catalog.list_namespaces(parent)
                return _texts(namespace=_like(names, statement.like))
        assert statement.of is not None
        if statement.what == "create view":
            return _create_view(statement, at)
        table = at.names.table(statement.of.parts)
        match statement.what:
            case "columns":
                return _texts(col_name=[f.name for f in table.metadata.schema().fields])
            case "tblproperties":
                return _properties(table, statement.key)
            case "create table":
                return _texts(createtab_stmt=[create_statement(table)])
            case "partitions":
                return Result.of(table.inspect.partitions)
            case "branches" | "tags":
                kind = RefKind.BRANCH if statement.what == "branches" else RefKind.TAG
                ids = {
                    name: int(ref.snapshot_id)
                    for name, ref in sorted(table.metadata.refs.items())
                    if ref.kind is kind
                }
                columns = {
                    "name": pa.array(list(ids), pa.string()),
                    "snapshot_id": pa.array(list(ids.values()), pa.int64()),
                }
                return Result.of(pa.table(columns))
    raise AssertionError(statement.what)


def _texts(**columns: Iterable[str | None]) -> Result:
    """Columns of text."""
    return Result.of(
        pa.table({name: pa.array(list(texts), pa.string()) for name, texts in columns.items()})
    )


def _like(names: list[str], pattern: str | None) -> list[str]:
    """Names that fit a pattern: `%` and `*` stand for anything, `|` separates patterns."""
    if pattern is None:
        return names
    patterns = [re.compile(translate(p.replace("%", "*").strip())) for p in pattern.split("|")]
    return [name for name in names if any(p.fullmatch(name.rpartition(".")[2]) for p in patterns)]


def _list(statement: st.Show, at: Execution) -> Result:
    namespace = at.names.namespace if statement.of is None else statement.of.parts
    if statement.what == "tables":
        names, column = at.catalog.list_tables(namespace or None), "tableName"
    else:
        names, column = at.catalog.list_views(namespace or None), "viewName"
    parts = [name.rpartition(".") for name in _like(names, statement.like)]
    return _texts(namespace=[part[0] for part in parts], **{column: [part[2] for part in parts]})


def _properties(table: Table, key: str | None) -> Result:
    properties = dict(table.properties)
    if key is not None:
        if key not in properties:
            raise InvalidInput(f"{table.name} has no property {key!r}")
        properties = {key: properties[key]}
    names = sorted(properties)
    return _texts(key=names, value=[properties[name] for name in names])


def _create_view(statement: st.Show, at: Execution) -> Result:
    assert statement.of is not None
    meant = at.names.find(statement.of.parts)
    if not isinstance(meant, ResolvedView):
        raise InvalidInput(f"{statement.of} is not a view")
    text = view_text(meant.state.metadata, str(statement.of))
    name = ".".join(map(_name, (*meant.state.identifier.namespace, meant.state.identifier.name)))
    columns = _view_columns(meant, text, at)
    comment = dict(meant.state.metadata.get("properties", {})).get("comment")
    comment_text = "" if comment is None else f" COMMENT {literal(comment)}"
    return _texts(createtab_stmt=[f"CREATE VIEW {name}{columns}{comment_text} AS\n{text}"])


def _view_columns(view: ResolvedView, text: str, at: Execution) -> str:
    """The columns of a view, where they are not just those of its query."""
    metadata = view.state.metadata
    stored = stored_view(metadata, view.state.identifier.name)
    names = list(stored.columns)
    docs = {
        field["name"]: field.get("doc")
        for schema in metadata.get("schemas", ())
        if [field["name"] for field in schema.get("fields", ())] == names
        for field in schema["fields"]
    }
    query_names = list(stored.query_columns) or _query_columns(text, stored.namespace, at) or names
    if query_names == names and not any(docs.values()):
        return ""
    listed = [
        _name(name) + ("" if not (doc := docs.get(name)) else f" COMMENT {literal(doc)}")
        for name in names
    ]
    return f" ({', '.join(listed)})"


def _query_columns(text: str, namespace: tuple[str, ...], at: Execution) -> list[str] | None:
    """The columns that the query of a view of 0.2 gives today."""
    import duckdb

    source = Source(text)
    at.engine.names = at.engine.names.within(namespace)
    try:
        ran = Binder(at.engine, source, tokens(source), []).query(Part(0, len(text)))
        return at.engine.columns_of(ran.text)
    except (FrazilError, duckdb.Error):  # its tables may be gone, or it is for another engine
        return None


# DESCRIBE


def _describe(statement: st.Describe, at: Execution) -> Result:
    if statement.query is not None:
        return _shape(at.relation(at.binder.query(statement.query)))
    if (namespace := statement.namespace) is not None:
        with at.place(namespace.start):
            properties = at.catalog.namespace_properties(namespace.parts)
        facts = {"Namespace Name": str(namespace), **dict(sorted(properties.items()))}
        return _texts(info_name=facts, info_value=facts.values())
    assert statement.table is not None
    with at.place(statement.table.start):
        meant = at.names.find(statement.table.parts)
        if isinstance(meant, ResolvedView):
            return _shape(at.everything(statement.table))
        if not isinstance(meant, ResolvedTable) or meant.metadata or meant.changes:
            return _shape(at.everything(statement.table))
        table = meant.table
        if statement.history:
            return _history(table)
        schema = (
            table.metadata.schema()
            if meant.as_of is None
            else table.scan(as_of=meant.as_of).read_schema
        )
        return _columns(table, schema, extended=statement.extended)


def _shape(relation: Any) -> Result:
    return _texts(col_name=relation.columns, data_type=map(str, relation.types))


def _columns(table: Table, schema: Schema, *, extended: bool) -> Result:
    fields = schema.fields
    facts: dict[str, str | None] = {}
    if extended:
        snapshot = table.current_snapshot()
        parts = [_term(schema, part) for part in table.metadata.spec().fields]
        facts = {
            "Name": table.name,
            "Branch": table.branch_name,
            "Location": table.location,
            "Format version": str(table.metadata.format_version),
            "Partitioned by": ", ".join(parts) or None,
            "Sorted by": ", ".join(_order_terms(schema, table.metadata.sort_order())) or None,
            "Current snapshot": None if snapshot is None else str(snapshot.snapshot_id),
            **{f"Property {key}": value for key, value in sorted(table.properties.items())},
        }
    nothing = [None] * len(facts)
    return _texts(
        col_name=[*(field.name for field in fields), *(f"# {name}" for name in facts)],
        data_type=[*(str(field.field_type) for field in fields), *facts.values()],
        nullable=[*("false" if field.required else "true" for field in fields), *nothing],
        comment=[*(field.doc for field in fields), *nothing],
    )


def _history(table: Table) -> Result:
    """Snapshots, newest first."""
    snapshots = table.inspect.snapshots
    order = list(range(snapshots.num_rows))[::-1]
    chosen = ["snapshot_id", "committed_at", "operation", "parent_id", "summary"]
    return Result.of(snapshots.select(chosen).take(order))


def _default(field: NestedField) -> str:
    """The default of a column that is given where it is defined."""
    value = field.write_default
    match value:
        case None:
            return ""
        case bool() | int() if isinstance(field.field_type, BooleanType | IntegerType | LongType):
            return f" DEFAULT {str(value).lower()}"
        case str() if isinstance(field.field_type, StringType):
            return f" DEFAULT {literal(value)}"
    return f" DEFAULT {value_text(value, field.field_type)}"


def create_statement(table: Table) -> str:
    """The statement that makes a table like this one."""
    schema = table.metadata.schema()
    keys = sorted(schema.identifier_field_names())
    lines = [
        f"  {_name(field.name)} {_type(field.field_type)}"
        + (" NOT NULL" if field.required else "")
        + _default(field)
        + (f" COMMENT {literal(field.doc)}" if field.doc else "")
        for field in schema.fields
    ]
    if keys:
        lines.append(f"  PRIMARY KEY ({', '.join(map(_name, keys))})")
    text = f"CREATE TABLE {'.'.join(map(_name, undotted(table.name)))} (\n"
    text += ",\n".join(lines) + "\n)"
    parts = [_term(schema, part) for part in table.metadata.spec().fields]
    if parts:
        text += f"\nPARTITIONED BY ({', '.join(parts)})"
    order = _order_terms(schema, table.metadata.sort_order())
    if order:
        text += f"\nWRITE ORDERED BY {', '.join(order)}"
    if table.expressions:
        text += f"\nEXPRESSIONS ({', '.join(table.expressions)})"
    properties = dict(table.properties)
    if properties:
        pairs = ", ".join(f"{literal(k)} = {literal(v)}" for k, v in sorted(properties.items()))
        text += f"\nTBLPROPERTIES ({pairs})"
    return text


def _type(kind: Any) -> str:
    return str(kind).upper() if kind.is_primitive else type_text(kind)


def _name(name: str) -> str:
    return name if _PLAIN.fullmatch(name) else quoted(name)


def _term(schema: Schema, part: PartitionField | SortField) -> str:
    ids = part.source_ids if isinstance(part, PartitionField) else (part.source_id,)
    column = ", ".join(_name(schema.find_column_name(source) or "?") for source in ids)
    match part.transform:
        case IdentityTransform():
            return column
        case BucketTransform() | JointBucketTransform() as bucket:
            return f"bucket({bucket.num_buckets}, {column})"
        case TruncateTransform() as truncate:
            return f"truncate({truncate.width}, {column})"
    return f"{part.transform}({column})"


def _order_terms(schema: Schema, order: SortOrder) -> list[str]:
    return [
        f"{_term(schema, field)} {field.direction.value.upper()} "
        f"{field.null_order.value.upper().replace('-', ' ')}"
        for field in order.fields
    ]


# EXPLAIN


def _explain(statement: st.Explain, at: Execution) -> Result:
    """What the tree pruned for each table, then the engine's plan."""
    ran = at.binder.query(*statement.parts, prefix=statement.prefix)
    at.relation(ran)
    word = f"EXPLAIN ({'ANALYZE, ' if statement.analyze else ''}FORMAT json)"
    try:
        text = at.explained(ran, word)
    except Exception as error:
        raise at.failed(error) from error
    pruned = at.engine.pruned
    plan = "\n".join(plan_text(plan, at.engine.user_names) for _, plan in text)
    return _texts(
        part=[*(scan.name for scan in pruned), "engine"],
        plan=[*(str(scan.report) for scan in pruned), plan],
    )
