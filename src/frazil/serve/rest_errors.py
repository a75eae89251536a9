"""Errors as the REST specification answers them: status, type and message."""

from __future__ import annotations

from collections.abc import Mapping

from frazil.errors import (
    AlreadyExists,
    Cancelled,
    CatalogError,
    CommitConflict,
    CommitUnknown,
    Forbidden,
    FrazilError,
    InvalidInput,
    NotFound,
    Overloaded,
    Unsupported,
)
from frazil.serve.limits import RETRY_AFTER_S


class RestError(Exception):
    """An answer that is an error."""

    def __init__(
        self, status: int, kind: str, message: str, *, headers: Mapping[str, str] | None = None
    ) -> None:
        self.status = status
        self.headers = dict(headers or {})
        self.kind = kind
        self.message = message
        super().__init__(message)

    def body(self) -> dict[str, dict[str, str | int]]:
        """The body of the answer."""
        return {"error": {"message": self.message, "type": self.kind, "code": self.status}}


class _Busy(RestError):
    """The server has no room; Frazil's own client is told that nothing was done."""

    def body(self) -> dict[str, dict[str, str | int]]:
        body = super().body()
        body["error"]["kind"] = Overloaded.kind
        return body


_KINDS: tuple[tuple[type[FrazilError], int, str], ...] = (
    (Forbidden, 403, "ForbiddenException"),
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
    if isinstance(error, Overloaded):
        return overloaded(str(error), is_own=error.is_own)
    if isinstance(error, Cancelled):
        return RestError(499, "ClientClosedRequestException", str(error))
    for kind, status, name in _KINDS:
        if isinstance(error, kind):
            return RestError(status, name, str(error))
    return RestError(500, "InternalServerError", str(error))


def overloaded(message: str, *, is_own: bool = False) -> RestError:
    """503, or 429 where the limit is the sender's own: nothing was done, and when to try again."""
    status, kind = (
        (429, "TooManyRequestsException") if is_own else (503, "ServiceUnavailableException")
    )
    return _Busy(status, kind, message, headers={"Retry-After": str(RETRY_AFTER_S)})


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
