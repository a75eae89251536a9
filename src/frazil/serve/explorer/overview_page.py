"""What a table is: columns and how they came about, partitions, order, properties, refs."""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import lru_cache
from importlib.resources import files
from typing import Any

from pyiceberg.schema import Schema

from frazil.errors import redacted
from frazil.format.metadata import Snapshot, TableMetadata
from frazil.format.stats import has_bounds
from frazil.format.totals import live_rows, number
from frazil.serve.exchange import Answer, Call
from frazil.serve.explorer import shown_values
from frazil.serve.explorer.evolution import leaf_columns, schema_changes
from frazil.serve.explorer.history_page import refs
from frazil.serve.service import Service
from frazil.table import Table

_COLUMN = "<name>"


def show(service: Service, call: Call) -> Answer:
    """GET overview."""
    identifier = call.identifier()
    table = service.table(identifier)
    metadata, tip = table.metadata, table.current_snapshot()
    summary = {} if tip is None else tip.summary
    history = table.snapshots()
    return Answer(
        body={
            "levels": list(identifier.namespace),
            "name": identifier.name,
            "uuid": str(metadata.table_uuid),
            "location": redacted(table.location),
            "format_version": metadata.format_version,
            "updated": metadata.last_updated_ms,
            "version": table._handle.state.version,
            "snapshot": None if tip is None else str(tip.snapshot_id),
            "rows": 0 if tip is None else live_rows(summary),
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
    schema = table.schema
    partitions = {field.source_id for field in table.spec.fields}
    sorted_by = {field.source_id for field in table.sort_order.fields}
    since: dict[int, int] = {}
    for known in table.metadata.schemas:
        for id in known.field_ids:
            since.setdefault(id, known.schema_id)
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
            "has_bounds": has_bounds(field.field_type),
            "since": since.get(field.field_id, schema.schema_id),
            "default": shown_values.text(field.initial_default),
        }
        for path, field in leaf_columns(schema)
    ]


def _schemas(metadata: TableMetadata, history: list[Snapshot]) -> list[dict[str, Any]]:
    first: dict[int, Snapshot] = {}
    for snapshot in history:
        if snapshot.schema_id is not None:
            first.setdefault(snapshot.schema_id, snapshot)
    found: list[dict[str, Any]] = []
    before: Schema | None = None
    for schema in metadata.schemas:
        used = first.get(schema.schema_id)
        found.append(
            {
                "id": schema.schema_id,
                "current": schema.schema_id == metadata.current_schema_id,
                "first_snapshot": None if used is None else str(used.snapshot_id),
                "time": None if used is None else used.timestamp_ms,
                "changes": [each.to_dict() for each in schema_changes(before, schema)],
            }
        )
        before = schema
    return found


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
                    "source": _source(metadata, field.source_id),
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


@lru_cache(maxsize=1)
def known_properties() -> list[dict[str, str]]:
    """Every table property that Frazil reads, as the reference lists them."""
    text = files(__package__).joinpath("properties.json").read_text(encoding="utf-8")
    found: list[dict[str, str]] = json.loads(text)
    return found


def properties(given: Mapping[str, str]) -> list[dict[str, Any]]:
    """Properties that are set, then those that could be. Values named like secrets are hidden."""
    known = {each["name"]: each for each in known_properties()}
    found: list[dict[str, Any]] = []
    for name, value in sorted(given.items()):
        about = known.get(name) or _of_column(name, known)
        hidden = redacted(f"{name}={value}x") != f"{name}={value}x"
        found.append(
            {
                "name": name,
                "value": "***" if hidden else value,
                "default": None if about is None else about["default"],
                "doc": "" if about is None else about["doc"],
                "known": about is not None,
            }
        )
    return found + [
        {"value": None, "known": True, **about}
        for name, about in known.items()
        if name not in given
    ]


def _of_column(name: str, known: Mapping[str, dict[str, str]]) -> dict[str, str] | None:
    """What is known of a property that ends with the name of a column."""
    for pattern, about in known.items():
        if pattern.endswith(_COLUMN) and name.startswith(pattern.removesuffix(_COLUMN)):
            return about
    return None
