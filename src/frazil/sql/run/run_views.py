"""CREATE, DROP and ALTER of views, stored as Iceberg's view metadata."""

from __future__ import annotations

import json
import time
import uuid
from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from frazil.catalog.names import dotted, undotted
from frazil.data.schema import iceberg_schema
from frazil.errors import AlreadyExists, InvalidInput, NotFound
from frazil.iceberg.schema import schema_document
from frazil.sql.bind.view_sql import QUERY_COLUMNS
from frazil.sql.name_resolution import repeated_name
from frazil.sql.output.query_result import Result, one_row
from frazil.sql.parse import statements as st
from frazil.value_classes import field, frozen

if TYPE_CHECKING:
    from frazil.sql.run.execution import Execution
    from frazil.table.catalog import Catalog

_DIALECT = "duckdb"


def run(statement: st.CreateView | st.AlterView, at: Execution) -> Result:
    """Carry out a statement."""
    views = at.catalog._pointers.views
    at.transactions.refuse("a change of a view")
    with at.place(statement.view.start):
        full = at.names.full(statement.view.parts)
        match statement:
            case st.CreateView():
                return _create(statement, full, at)
            case st.AlterView(does=st.RenameTable(to=to)):
                parts = to.parts if len(to.parts) > 1 else (*undotted(full)[:-1], *to.parts)
                views.rename(full, dotted(parts))
                return one_row(altered=full)
            case st.AlterView(does=st.SetProperties(updates=updates, removals=removals)):
                set_view_properties(at.catalog, full, updates, removals)
                return one_row(altered=full)
    raise AssertionError(statement)


def _create(statement: st.CreateView, full: str, at: Execution) -> Result:
    views = at.catalog._pointers.views
    exists = views.exists(full)
    if exists and statement.if_not_exists:
        return one_row(created=None)
    if at.catalog.table_exists(full):
        raise AlreadyExists(f"{full} is a table")
    if exists and not statement.or_replace:
        raise AlreadyExists(f"view {full} already exists")
    if statement.must_exist and not exists:
        raise NotFound(f"view {full} does not exist")
    at.engine.open_views.append(full)
    query_schema = at.result(statement.query).schema
    columns = statement.columns
    if len(columns) > len(query_schema.names):
        raise InvalidInput(
            f"the view names {len(columns)} columns, its query has {len(query_schema.names)}"
        )
    names = [name for name, _ in columns]
    names += query_schema.names[len(names) :]
    if repeated_name(names) is not None:
        raise InvalidInput("the query has two columns of one name; give one an alias")
    query_columns = list(query_schema.names)
    if repeated_name(query_columns) is not None:
        query_columns = []  # they go by position then
    docs = [doc for _, doc in columns] + [None] * (len(names) - len(columns))
    fields = [
        pa.field(name, column.type, nullable=True)
        for name, column in zip(names, query_schema, strict=True)
    ]
    schema = _json_schema(pa.schema(fields), docs)
    namespace = list(at.names.namespace or undotted(full)[:-1])
    text = at.binder.constant_text(statement.query)
    version = ViewVersion(
        schema=schema,
        text=text,
        namespace=namespace,
        query_columns=query_columns,
        dialect=_DIALECT,
    )
    store_view(at.catalog, full, version, statement.properties)
    return one_row(created=full)


@frozen
class ViewVersion:
    """What a version of a view says. `summary` are an engine's own notes."""

    schema: Mapping[str, Any]
    text: str
    namespace: Sequence[str]
    query_columns: Sequence[str]
    dialect: str
    default_catalog: str | None = None
    summary: Mapping[str, str] = field(default_factory=dict)

    def document(self, number: int, schema_id: int, now_ms: int, operation: str) -> dict[str, Any]:
        """The version as view metadata has it."""
        summary = {"engine-name": "frazil", "operation": operation, **self.summary}
        if self.query_columns:
            summary[QUERY_COLUMNS] = json.dumps(list(self.query_columns))
        document = {
            "version-id": number,
            "schema-id": schema_id,
            "timestamp-ms": now_ms,
            "summary": summary,
            "default-namespace": list(self.namespace),
            "representations": [{"type": "sql", "sql": self.text, "dialect": self.dialect}],
        }
        if self.default_catalog is not None:
            document["default-catalog"] = self.default_catalog
        return document


def store_view(
    catalog: Catalog, full: str, version: ViewVersion, properties: Mapping[str, str]
) -> None:
    """Make a version the current one of a view, which is created if there is none."""
    views = catalog._pointers.views
    catalog.create_namespace(undotted(full)[:-1], if_not_exists=True)
    if views.exists(full):
        base = views.load(full)
        views.replace(base, _next_version(dict(base.metadata), version, properties))
    else:
        views.create(full, _metadata(catalog, full, version, properties))


def set_view_properties(
    catalog: Catalog, full: str, updates: Mapping[str, str], removals: Collection[str]
) -> None:
    """Set properties of a view, and remove others."""
    views = catalog._pointers.views
    base = views.load(full)
    kept = dict(base.metadata.get("properties", {}))
    for key in removals:
        kept.pop(key, None)
    views.replace(base, {**base.metadata, "properties": {**kept, **updates}})


def _json_schema(schema: pa.Schema, docs: list[str | None]) -> dict[str, Any]:
    converted = iceberg_schema(schema)
    value = schema_document(converted)
    for column, doc in zip(value["fields"], docs, strict=True):
        if doc is not None:
            column["doc"] = doc
    return value


def _metadata(
    catalog: Catalog, full: str, version: ViewVersion, properties: Mapping[str, str]
) -> dict[str, Any]:
    now_ms = time.time_ns() // 1_000_000
    try:
        location = catalog._pointers.location_for(full)
    except InvalidInput:
        location = ""
    return {
        "view-uuid": str(uuid.uuid4()),
        "format-version": 1,
        "location": location,
        "current-version-id": 1,
        "versions": [version.document(1, 0, now_ms, "create")],
        "version-log": [{"timestamp-ms": now_ms, "version-id": 1}],
        "schemas": [{**version.schema, "schema-id": 0}],
        "properties": dict(properties),
    }


def _next_version(
    metadata: dict[str, Any], version: ViewVersion, properties: Mapping[str, str]
) -> dict[str, Any]:
    now_ms = time.time_ns() // 1_000_000
    number = 1 + max((v["version-id"] for v in metadata["versions"]), default=0)
    schemas = list(metadata.get("schemas", ()))
    same = [s["schema-id"] for s in schemas if s.get("fields") == version.schema["fields"]]
    if same:
        schema_id = same[0]
    else:
        schema_id = 1 + max((s["schema-id"] for s in schemas), default=-1)
        schemas.append({**version.schema, "schema-id": schema_id})
    return {
        **metadata,
        "current-version-id": number,
        "versions": [
            *metadata["versions"],
            version.document(number, schema_id, now_ms, "replace"),
        ],
        "version-log": [
            *metadata.get("version-log", ()),
            {"timestamp-ms": now_ms, "version-id": number},
        ],
        "schemas": schemas,
        "properties": {**metadata.get("properties", {}), **properties},
    }
