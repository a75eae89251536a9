"""Views of a catalog in Spark SQL: Iceberg's view metadata with a representation in its dialect.

Spark's settings at creation (`view.sqlConfig.…`) are kept in the summary of a view's version, so
that a view means the same in every session. A view that another engine made is translated.
"""

from __future__ import annotations

import fnmatch
import json
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
from pyspark.sql import types as sql

from frazil.catalog.names import Identifier
from frazil.errors import AlreadyExists, InvalidInput, NotFound, Unsupported
from frazil.iceberg.schema import load_schema, schema_document
from frazil.spark.session import jar
from frazil.spark.types.spark_types import declared_schema, spark_schema
from frazil.sql.bind.view_sql import CATALOG_NAME, QUERY_COLUMNS, translated_view
from frazil.sql.run.run_views import ViewVersion, set_view_properties, store_view

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from frazil.table.catalog import Catalog

_DIALECT: Final = "spark"
_SETTINGS: Final = "view.sqlConfig."
_ICEBERGS_COLUMNS: Final = "spark.query-column-names"


def loaded_view(catalog: Catalog, own_name: str, path: Sequence[str]) -> dict[str, Any] | None:
    """A view as Spark is told of it; None where there is none."""
    views = catalog._pointers.views
    name = Identifier.parse(tuple(path))
    if not views.exists(name):
        return None
    metadata = views.load(name).metadata
    version = _current(metadata, str(name))
    summary = version.get("summary") or {}
    schema = next(
        schema
        for schema in metadata["schemas"]
        if schema.get("schema-id") == version.get("schema-id")
    )
    columns = spark_schema(load_schema(schema))
    return {
        "text": _text(version, str(name)),
        "schema": columns.json(),
        "query columns": _query_columns(metadata, summary, columns.names),
        "start": [version.get("default-catalog") or own_name, *version["default-namespace"]],
        "settings": {key: value for key, value in summary.items() if key.startswith(_SETTINGS)},
        "properties": dict(metadata.get("properties", {})),
    }


def _current(metadata: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    current = metadata.get("current-version-id")
    for version in metadata.get("versions", ()):
        if version.get("version-id") == current:
            return dict(version)
    raise NotFound(f"view {name} has no version {current}")


def _text(version: Mapping[str, Any], name: str) -> str:
    texts = {
        str(representation.get("dialect", "")).lower(): str(representation["sql"])
        for representation in version.get("representations", ())
        if representation.get("type") == "sql"
    }
    if _DIALECT in texts:
        return texts[_DIALECT]
    for dialect, text in texts.items():
        translated = translated_view(text, dialect, _DIALECT)
        if translated is not None:
            return translated
    raise Unsupported(
        f"view {name} has no SQL for Spark; its dialects: {', '.join(texts) or 'none'}",
        feature="view dialect",
    )


def _query_columns(
    metadata: Mapping[str, Any], summary: Mapping[str, str], names: Sequence[str]
) -> list[str]:
    icebergs = metadata.get("properties", {}).get(_ICEBERGS_COLUMNS)
    if QUERY_COLUMNS in summary:
        return list(json.loads(summary[QUERY_COLUMNS]))
    return list(names) if icebergs is None else str(icebergs).split(",")


def changed_view(
    spark: SparkSession, catalog: Catalog, own_name: str, change: Mapping[str, Any]
) -> pa.Table:
    """Carry out a statement on a view, or on the views of a namespace."""
    path = tuple(change["path"])
    if change["do"] == "list":
        return _listed(catalog, path, change["pattern"])
    name = Identifier.parse(path)
    views = catalog._pointers.views
    if change["do"] == "create":
        _create(spark, catalog, own_name, path, change)
        return _nothing()
    if not views.exists(name):
        if catalog.table_exists(path):
            raise InvalidInput(f"{name} is a table, not a view")
        if change.get("if exists"):
            return _nothing()
        raise NotFound(f"view {name} does not exist")
    match change["do"]:
        case "alter":
            version = _version(spark, own_name, path, change, columns=[])
            store_view(catalog, str(name), version, {})
        case "drop":
            views.drop(name)
        case "rename":
            to = change["to"]
            views.rename(name, tuple(to) if len(to) > 1 else (*path[:-1], *to))
        case "set properties":
            updates, removals = change.get("set", {}), change.get("remove", ())
            set_view_properties(catalog, str(name), updates, removals)
        case _:
            return _create_statement(catalog, own_name, path)
    return _nothing()


def _nothing() -> pa.Table:
    """The answer of a statement that only does something."""
    return pa.table({"view": pa.array([], pa.string())})


def _listed(catalog: Catalog, namespace: tuple[str, ...], pattern: str | None) -> pa.Table:
    views = [Identifier.parse(name) for name in catalog.list_views(namespace)]
    patterns = (pattern or "*").split("|")
    names = [
        view.name
        for view in views
        if any(fnmatch.fnmatch(view.name.lower(), part.lower()) for part in patterns)
    ]
    return pa.table(
        {
            "namespace": pa.array([".".join(namespace)] * len(names), pa.string()),
            "viewName": pa.array(names, pa.string()),
            "isTemporary": pa.array([False] * len(names), pa.bool_()),
        }
    )


def _create_statement(catalog: Catalog, own_name: str, path: tuple[str, ...]) -> pa.Table:
    view = loaded_view(catalog, own_name, path)
    assert view is not None
    names = sql.StructType.fromJson(json.loads(view["schema"])).names
    columns = ", ".join(_quoted(name) for name in names)
    full = ".".join(_quoted(part) for part in (own_name, *path))
    text = f"CREATE VIEW {full} ({columns}) AS\n{view['text']}"
    return pa.table({"createtab_stmt": pa.array([text], pa.string())})


def _quoted(name: str) -> str:
    return f"`{name.replace('`', '``')}`"


def _create(
    spark: SparkSession,
    catalog: Catalog,
    own_name: str,
    path: tuple[str, ...],
    change: Mapping[str, Any],
) -> None:
    name = Identifier.parse(path)
    if catalog.table_exists(path):
        raise AlreadyExists(f"{name} is a table")
    if catalog.view_exists(path):
        if change["exists"] == "keep":
            return
        if change["exists"] == "refuse":
            raise AlreadyExists(f"view {name} already exists")
    version = _version(spark, own_name, path, change, columns=change["columns"])
    properties = dict(change["properties"])
    if change["comment"] is not None:
        properties["comment"] = change["comment"]
    store_view(catalog, str(name), version, properties)


def _version(
    spark: SparkSession,
    own_name: str,
    path: tuple[str, ...],
    change: Mapping[str, Any],
    *,
    columns: Sequence[tuple[str, str | None]],
) -> ViewVersion:
    """A version of a view, of a query that Spark has resolved."""
    frame = spark.sql(change["query"])
    named = ".".join(path)
    *namespace, last = path
    problem = jar.call(
        spark, "OpenNames", "problem", frame._jdf, own_name, ".".join(namespace), last
    )
    if problem is not None:
        raise InvalidInput(f"view {named} cannot be stored: {problem}")
    schema = _columns(frame, columns, named)
    default_catalog = None if change["catalog"] == own_name else change["catalog"]
    return ViewVersion(
        schema=schema_document(declared_schema(schema)),
        text=change["query"],
        namespace=change["namespace"],
        query_columns=frame.columns,
        dialect=_DIALECT,
        default_catalog=default_catalog,
        summary={CATALOG_NAME: own_name, **change["settings"]},
    )


def _columns(
    frame: DataFrame, columns: Sequence[tuple[str, str | None]], named: str
) -> sql.StructType:
    own = frame.schema.fields
    if columns and len(columns) != len(own):
        raise InvalidInput(f"view {named} names {len(columns)} columns, its query has {len(own)}")
    names = [name for name, _ in columns] or [field.name for field in own]
    folded = [name.lower() for name in names]
    twice = [name for at, name in enumerate(names) if folded[at] in folded[:at]]
    twice += [name for name in frame.columns if frame.columns.count(name) > 1]
    if twice:
        raise InvalidInput(f"view {named} has two columns {twice[0]}; give one an alias")
    docs = [doc for _, doc in columns] or [(field.metadata or {}).get("comment") for field in own]
    return sql.StructType(
        [
            sql.StructField(name, field.dataType, True, {} if doc is None else {"comment": doc})
            for name, doc, field in zip(names, docs, own, strict=True)
        ]
    )
