"""A view: the SQL that it stands for, its columns, and how it came about."""

from __future__ import annotations

from typing import Any

from frazil.catalog.names import dotted
from frazil.catalog.views import view_text
from frazil.errors import NotFound
from frazil.serve.exchange import Request, Response
from frazil.serve.rest_errors import no_view
from frazil.serve.service import Service

PLACE = "/explorer/api/views/{namespace}/{view}"


def show(service: Service, call: Request) -> Response:
    """GET a view."""
    identifier = call.identifier("view")
    try:
        view = service.catalog._pointers.views.load(identifier)
    except NotFound as error:
        raise no_view(identifier) from error
    metadata = view.metadata
    versions = list(metadata.get("versions", ()))
    current: dict[str, Any] = next(
        (v for v in versions if v.get("version-id") == metadata.get("current-version-id")), {}
    )
    schema: dict[str, Any] = next(
        (s for s in metadata.get("schemas", ()) if s.get("schema-id") == current.get("schema-id")),
        {},
    )
    dialects = [str(text.get("dialect", "")) for text in current.get("representations", ())]
    return Response(
        body={
            "levels": list(identifier.namespace),
            "name": identifier.name,
            "sql": view_text(metadata, str(identifier)),
            "dialect": dialects[0] if dialects else "",
            "namespace": dotted(tuple(current.get("default-namespace", ()))),
            "changed": current.get("timestamp-ms"),
            "versions": len(versions),
            "columns": [
                {
                    "name": str(field.get("name")),
                    "type": _type_text(field.get("type")),
                    "doc": field.get("doc"),
                }
                for field in schema.get("fields", ())
            ],
        }
    )


def _type_text(kind: Any) -> str:
    return kind if isinstance(kind, str) else str(kind.get("type", "")) if kind else ""
