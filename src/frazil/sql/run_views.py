"""CREATE, DROP and ALTER of views, stored as Iceberg's view metadata."""

from __future__ import annotations

import time
import uuid
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from frazil.catalog.names import dotted, undotted
from frazil.data.schema import iceberg_schema
from frazil.errors import AlreadyExists, InvalidInput, NotFound
from frazil.sql import statements as st
from frazil.sql.query_result import Result, done

if TYPE_CHECKING:
    from frazil.sql.execution import Statement

_DIALECT = "duckdb"


def run(statement: st.CreateView | st.DropView | st.AlterView, at: Statement) -> Result:
    """Carry out a statement."""
    views = at.catalog._pointers.views
    at.transactions.refuse("a change of a view")
    with at.place(statement.view.start):
        full = at.names.full(statement.view.parts)
        match statement:
            case st.CreateView():
                return _create(statement, full, at)
            case st.DropView(if_exists=if_exists):
                if not views.exists(full):
                    if at.catalog.table_exists(full):
                        raise InvalidInput(f"{full} is a table; use DROP TABLE")
                    if if_exists:
                        return done(dropped=None)
                views.drop(full)
                return done(dropped=full)
            case st.AlterView(does=st.RenameTable(to=to)):
                parts = to.parts if len(to.parts) > 1 else (*undotted(full)[:-1], *to.parts)
                views.rename(full, dotted(parts))
                return done(altered=full)
            case st.AlterView(does=st.SetProperties(updates=updates, removals=removals)):
                base = views.load(full)
                kept = {
                    key: value
                    for key, value in dict(base.metadata.get("properties", {})).items()
                    if key not in removals
                }
                views.replace(base, {**base.metadata, "properties": {**kept, **updates}})
                return done(altered=full)
    raise AssertionError(statement)


def _create(statement: st.CreateView, full: str, at: Statement) -> Result:
    views = at.catalog._pointers.views
    exists = views.exists(full)
    if exists and statement.if_not_exists:
        return done(created=None)
    if at.catalog.table_exists(full):
        raise AlreadyExists(f"{full} is a table")
    if exists and not statement.or_replace:
        raise AlreadyExists(f"view {full} exists already")
    if statement.must_exist and not exists:
        raise NotFound(f"view {full} does not exist")
    at.engine.open_views.append(full)
    found = at.result(statement.query).schema
    columns = statement.columns
    if columns and len(columns) != len(found.names):
        raise InvalidInput(
            f"the view names {len(columns)} columns, its query has {len(found.names)}"
        )
    names = [name for name, _ in columns] or list(found.names)
    if len({name.lower() for name in names}) != len(names):
        raise InvalidInput("the query has two columns of one name; give one an alias")
    docs = [doc for _, doc in columns] or [None] * len(names)
    fields = [
        pa.field(name, field.type, nullable=True) for name, field in zip(names, found, strict=True)
    ]
    schema = _json_schema(pa.schema(fields), docs)
    namespace = list(at.names.namespace or undotted(full)[:-1])
    text = at.binder.plain(statement.query)
    at.catalog.create_namespace(undotted(full)[:-1], if_not_exists=True)
    if not exists:
        views.create(full, _metadata(statement, full, schema, text, namespace, at))
        return done(created=full)
    base = views.load(full)
    views.replace(base, _next_version(dict(base.metadata), statement, schema, text, namespace))
    return done(created=full)


def _json_schema(schema: pa.Schema, docs: list[str | None]) -> dict[str, Any]:
    made = iceberg_schema(schema)
    value = made.model_dump(mode="json", by_alias=True, exclude_none=True)
    for field, doc in zip(value["fields"], docs, strict=True):
        if doc is not None:
            field["doc"] = doc
    return dict(value)


def _version(
    number: int, schema_id: int, text: str, namespace: list[str], now_ms: int, operation: str
) -> dict[str, Any]:
    return {
        "version-id": number,
        "schema-id": schema_id,
        "timestamp-ms": now_ms,
        "summary": {"engine-name": "frazil", "operation": operation},
        "default-namespace": namespace,
        "representations": [{"type": "sql", "sql": text, "dialect": _DIALECT}],
    }


def _metadata(
    statement: st.CreateView,
    full: str,
    schema: dict[str, Any],
    text: str,
    namespace: list[str],
    at: Statement,
) -> dict[str, Any]:
    now_ms = time.time_ns() // 1_000_000
    try:
        location = at.catalog._pointers.location_for(full)
    except InvalidInput:
        location = ""
    return {
        "view-uuid": str(uuid.uuid4()),
        "format-version": 1,
        "location": location,
        "current-version-id": 1,
        "versions": [_version(1, 0, text, namespace, now_ms, "create")],
        "version-log": [{"timestamp-ms": now_ms, "version-id": 1}],
        "schemas": [{**schema, "schema-id": 0}],
        "properties": dict(statement.properties),
    }


def _next_version(
    metadata: dict[str, Any],
    statement: st.CreateView,
    schema: dict[str, Any],
    text: str,
    namespace: list[str],
) -> dict[str, Any]:
    now_ms = time.time_ns() // 1_000_000
    number = 1 + max((v["version-id"] for v in metadata["versions"]), default=0)
    schemas = list(metadata.get("schemas", ()))
    same = [s["schema-id"] for s in schemas if s.get("fields") == schema["fields"]]
    if same:
        schema_id = same[0]
    else:
        schema_id = 1 + max((s["schema-id"] for s in schemas), default=-1)
        schemas.append({**schema, "schema-id": schema_id})
    made = _version(number, schema_id, text, namespace, now_ms, "replace")
    return {
        **metadata,
        "current-version-id": number,
        "versions": [*metadata["versions"], made],
        "version-log": [
            *metadata.get("version-log", ()),
            {"timestamp-ms": now_ms, "version-id": number},
        ],
        "schemas": schemas,
        "properties": {**metadata.get("properties", {}), **statement.properties},
    }


def view_text(metadata: dict[str, Any], name: str) -> str:
    """The SQL a view was made with."""
    current = metadata.get("current-version-id")
    for version in metadata.get("versions", ()):
        if version.get("version-id") == current:
            for each in version.get("representations", ()):
                return str(each["sql"])
    raise NotFound(f"view {name} has no SQL")
