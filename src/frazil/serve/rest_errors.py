"""Errors as the REST specification answers them: status, type and message."""

from __future__ import annotations

from frazil.errors import (
    AlreadyExists,
    CatalogError,
    CommitConflict,
    CommitUnknown,
    FrazilError,
    InvalidInput,
    NotFound,
    Unsupported,
)


class RestError(Exception):
    """An answer that is an error."""

    def __init__(self, status: int, kind: str, message: str) -> None:
        self.status = status
        self.kind = kind
        self.message = message
        super().__init__(message)

    def body(self) -> dict[str, dict[str, str | int]]:
        """The body of the answer."""
        return {"error": {"message": self.message, "type": self.kind, "code": self.status}}


_KINDS: tuple[tuple[type[FrazilError], int, str], ...] = (
    (NotFound, 404, "NotFoundException"),
    (AlreadyExists, 409, "AlreadyExistsException"),
    (CommitConflict, 409, "CommitFailedException"),
    # Clients treat 500, 502 and 504 as an unknown outcome and delete nothing.
    (CommitUnknown, 504, "CommitStateUnknownException"),
    (InvalidInput, 400, "BadRequestException"),
    (Unsupported, 400, "BadRequestException"),
    (CatalogError, 503, "ServiceUnavailableException"),
)


def rest_error(error: FrazilError) -> RestError:
    """The answer to an error raised below. A failure that is not the client's is a 500."""
    for kind, status, name in _KINDS:
        if isinstance(error, kind):
            return RestError(status, name, str(error))
    return RestError(500, "InternalServerError", str(error))


def bad_request(message: str) -> RestError:
    """400: the request cannot be carried out as given."""
    return RestError(400, "BadRequestException", message)


def no_namespace(namespace: tuple[str, ...]) -> RestError:
    """404 for a namespace."""
    name = ".".join(namespace)
    return RestError(404, "NoSuchNamespaceException", f"Namespace does not exist: {name}")


def no_table(name: object) -> RestError:
    """404 for a table."""
    return RestError(404, "NoSuchTableException", f"Table does not exist: {name}")


def no_view(name: object) -> RestError:
    """404 for a view."""
    return RestError(404, "NoSuchViewException", f"View does not exist: {name}")


def conflict(message: str) -> RestError:
    """409: the table is not what the client expects."""
    return RestError(409, "CommitFailedException", message)


def taken(what: str, name: object) -> RestError:
    """409: the name is in use."""
    return RestError(409, "AlreadyExistsException", f"{what} already exists: {name}")
