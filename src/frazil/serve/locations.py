"""Which files a client can make the server read or write: those of tables and the warehouse."""

from __future__ import annotations

import posixpath

from frazil.serve.errors import RestError
from frazil.serve.service import Service
from frazil.storage import is_local
from frazil.storage.base import local_path


def check_location(service: Service, path: str, *more: str) -> None:
    """403 unless a path lies in the warehouse, in a place the server was told of, or in one of
    `more`."""
    allowed = (service.catalog.warehouse, *service.settings.allowed, *more)
    if not any(lies_in(path, folder) for folder in allowed if folder):
        raise RestError(
            403,
            "ForbiddenException",
            f"{path}: lies outside the warehouse and the locations this server may use",
        )


def lies_in(path: str, folder: str) -> bool:
    """Whether a path is a folder or lies below it, without a way out through `..`."""
    inner, outer = _plain(path), _plain(folder)
    return inner == outer or inner.startswith(outer.rstrip("/") + "/")


def _plain(path: str) -> str:
    if is_local(path):
        return posixpath.normpath(local_path(path))
    scheme, _, rest = path.partition("://")
    return f"{scheme.lower()}://{posixpath.normpath(rest)}"
