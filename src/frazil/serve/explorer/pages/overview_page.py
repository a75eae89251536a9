"""What a table is: columns and how they came about, partitions, order, properties, refs."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from frazil.errors import redacted
from frazil.format.entries.stats import is_ordered
from frazil.format.metadata.metadata import Snapshot, TableMetadata
from frazil.format.metadata.summary_totals import live_rows, number
from frazil.iceberg.schema import Schema
from frazil.properties.registry import OF_TABLES, table_property
from frazil.serve.exchange import Request, Response
from frazil.serve.explorer import display_values
from frazil.serve.explorer.pages.compare_page import leaf_columns, schema_changes
from frazil.serve.explorer.pages.history_page import refs
from frazil.serve.service import Service
from frazil.table import Table

_LINK = re.compile(r"\[([^\]]+)\]\([^)]*\)")


def show(service: Service, call: Request) -> Response:
    """GET overview."""
    identifier = call.identifier()
    table = service.table(identifier)
    metadata, tip = table.metadata, table.current_snapshot()
    summary = {} if tip is None else tip.summary
    history = table.snapshots()
    return Response(
        body={
            "levels": list(identifier.namespace),
            "name": identifier.name,
            "uuid": str(metadata.table_uuid),
            "location": redacted(table.location),
            "format_version": metadata.format_version,
            "updated": metadata.last_updated_ms,
            "version": table._handle.state.version,
            "snapshot": None if tip is None else str(tip.snapshot_id),
            "rows": live_rows(tip),
            "files": 0 if tip is None else number(summary, "total-data-files"),
            "bytes": 0 if tip is None else number(summary, "total-files-size"),
            "commits": len(history),
            "columns": _columns(table),
            "schemas": _schemas(metadata, history),
            "specs": _specs(metadata),
            "sort_orders": _sort_orders(metadata),
            "properties": properties(metadata.properties),
            "refs": refs(metadata),
        }
    )


def _columns(table: Table) -> list[dict[str, Any]]:
    schema = table.metadata.schema()
    partitions = {source for field in table.metadata.spec().fields for source in field.source_ids}
    sorted_by = {field.source_id for field in table.metadata.sort_order().fields}
    since: dict[int, int] = {}
    for any_schema in table.metadata.schemas:
        for id in any_schema.field_ids:
            since.setdefault(id, any_schema.schema_id)
    return [
        {
            "id": field.field_id,
            "name": field.name,
            "path": path,
            "type": str(field.field_type),
            "required": field.required,
            "doc": field.doc,
            "identifier": field.field_id in schema.identifier_field_ids,
            "partition": field.field_id in partitions,
            "sort": field.field_id in sorted_by,
            "has_bounds": is_ordered(field.field_type),
            "since": since.get(field.field_id, schema.schema_id),
            "default": display_values.text(field.initial_default),
        }
        for path, field in leaf_columns(schema)
    ]


def _schemas(metadata: TableMetadata, history: list[Snapshot]) -> list[dict[str, Any]]:
    first: dict[int, Snapshot] = {}
    for snapshot in history:
        if snapshot.schema_id is not None:
            first.setdefault(snapshot.schema_id, snapshot)
    schemas: list[dict[str, Any]] = []
    before: Schema | None = None
    for schema in metadata.schemas:
        used = first.get(schema.schema_id)
        schemas.append(
            {
                "id": schema.schema_id,
                "current": schema.schema_id == metadata.current_schema_id,
                "first_snapshot": None if used is None else str(used.snapshot_id),
                "time": None if used is None else used.timestamp_ms,
                "changes": [change.to_dict() for change in schema_changes(before, schema)],
            }
        )
        before = schema
    return schemas


def _source(metadata: TableMetadata, field_id: int) -> str:
    for schema in (metadata.schema(), *reversed(metadata.schemas)):
        name = schema.find_column_name(field_id)
        if name is not None:
            return name
    return str(field_id)


def _specs(metadata: TableMetadata) -> list[dict[str, Any]]:
    return [
        {
            "id": spec.spec_id,
            "current": spec.spec_id == metadata.default_spec_id,
            "fields": [
                {
                    "id": field.field_id,
                    "name": field.name,
                    "source": ", ".join(_source(metadata, id) for id in field.source_ids),
                    "transform": str(field.transform),
                }
                for field in spec.fields
            ],
        }
        for spec in metadata.partition_specs
    ]


def _sort_orders(metadata: TableMetadata) -> list[dict[str, Any]]:
    return [
        {
            "id": order.order_id,
            "current": order.order_id == metadata.default_sort_order_id,
            "fields": [
                {
                    "source": _source(metadata, field.source_id),
                    "transform": str(field.transform),
                    "direction": field.direction.value,
                    "nulls": field.null_order.value.removeprefix("nulls-"),
                }
                for field in order.fields
            ],
        }
        for order in metadata.sort_orders
    ]


def properties(values: Mapping[str, str]) -> list[dict[str, Any]]:
    """Properties that are set, then those that could be. Values named like secrets are hidden."""
    rows: list[dict[str, Any]] = []
    for name, value in sorted(values.items()):
        setting = table_property(name)
        hidden = redacted(f"{name}={value}x") != f"{name}={value}x"
        rows.append(
            {
                "name": name,
                "value": "***" if hidden else value,
                "default": None if setting is None else _unmarked(setting.shown_default),
                "doc": "" if setting is None else _unmarked(setting.text),
                "known": setting is not None,
            }
        )
    return rows + [
        {
            "name": setting.shown_key,
            "value": None,
            "default": _unmarked(setting.shown_default),
            "doc": _unmarked(setting.text),
            "known": True,
        }
        for setting in OF_TABLES.values()
        if setting.key not in values
    ]


def _unmarked(text: str) -> str:
    """Markdown of one line as plain text."""
    return _LINK.sub(r"\1", text).replace("`", "")
