"""The SQL of a stored view for this engine."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import sqlglot

from frazil.errors import NotFound, Unsupported


def view_query(metadata: Mapping[str, Any], name: str) -> tuple[str, tuple[str, ...], list[str]]:
    """The SQL of a view for this engine, the namespace its names start from, its columns."""
    current = metadata.get("current-version-id")
    versions = [v for v in metadata.get("versions", ()) if v.get("version-id") == current]
    if not versions:
        raise NotFound(f"view {name} has no version {current}")
    version = versions[0]
    texts = {
        str(each.get("dialect", "")).lower(): str(each["sql"])
        for each in version.get("representations", ())
        if each.get("type") == "sql"
    }
    namespace = tuple(version.get("default-namespace") or ())
    schemas = {each.get("schema-id"): each for each in metadata.get("schemas", ())}
    schema = schemas.get(version.get("schema-id"), {})
    columns = [each["name"] for each in schema.get("fields", ())]
    if "duckdb" in texts:
        return texts["duckdb"], namespace, columns
    for dialect, text in texts.items():
        try:
            return sqlglot.transpile(text, read=dialect, write="duckdb")[0], namespace, columns
        except (sqlglot.ParseError, ValueError):
            continue
    known = ", ".join(texts) or "none"
    raise Unsupported(
        f"view {name} has no SQL for this engine; its dialects: {known}", feature="view dialect"
    )
