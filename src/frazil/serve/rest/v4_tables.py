"""Tables as they are, format version 4, over HTTP: a draft that Iceberg's community has in review.

`GET /v2/{prefix}/namespaces/{namespace}/tables/{table}` gives the metadata with its roots. Where
tables are shown so, v1 refuses them with 400 and the error's own type, so that a client which knows
only v1 does not take such a table for a broken one.
"""

from __future__ import annotations

from typing import Any

import msgspec

from frazil.format.metadata import metadata_json
from frazil.format.metadata.metadata import FORMAT_VERSION, TableMetadata
from frazil.properties.registry import SERVE_FORMAT_VERSION
from frazil.serve.access.rights import PATH_READER
from frazil.serve.exchange import Endpoint, Request, Response
from frazil.serve.rest_errors import RestError
from frazil.serve.service import Service
from frazil.serve.view.published_view import head_of

TEMPLATE = "/v2/{prefix}/namespaces/{namespace}/tables/{table}"


def need_older(service: Service, call: Request, metadata: TableMetadata) -> None:
    """400 on v1 for a table that is shown as it is. Prefixes and the table's own property
    `serve.format-version` ask for an older version."""
    if (
        service.settings.shows_v4
        and metadata.format_version >= FORMAT_VERSION
        and call.format_version is None
        and SERVE_FORMAT_VERSION.key not in metadata.properties
    ):
        raise RestError(
            400,
            "UnsupportedTableFormatVersionError",
            "the table has format version 4, which this endpoint does not show: load it from "
            f"{TEMPLATE}, use the prefix v2 or v3, or set {SERVE_FORMAT_VERSION.key} on the table",
        )


def load_table(service: Service, call: Request) -> Response:
    """GET: the metadata as it is stored, or 304 when the client has it."""
    handle = service.table(call.identifier())._handle
    state, metadata = handle.state, handle.metadata
    etag = f'"{metadata.table_uuid}-{state.version}"'
    if call.headers.get("if-none-match") == etag:
        return Response(status=304, headers={"ETag": etag})
    document = metadata_json.dumps(metadata, head_of(handle).history())
    body: dict[str, Any] = {
        "metadata": msgspec.Raw(document),
        "table-location": metadata.location,
        "config": dict(service.settings.properties),
    }
    if state.metadata_location is not None and metadata.format_version < FORMAT_VERSION:
        body["metadata-location"] = state.metadata_location
    return Response(body=body, headers={"ETag": etag})


ENDPOINTS = (Endpoint(method="GET", template=TEMPLATE, handler=load_table, rights=PATH_READER),)
"""Those of a server whose `shows_v4` is set."""
