"""One request and its answer, without a web framework: what every endpoint takes and returns."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, TypeVar

import msgspec

from frazil.catalog.names import Identifier, Namespace
from frazil.errors import InvalidInput
from frazil.serve.rest_errors import bad_request

if TYPE_CHECKING:
    from frazil.serve.access import Principal
    from frazil.serve.service import Service

SEPARATOR = "\x1f"
"""What separates the levels of a namespace in a path."""
Shape = TypeVar("Shape")
Right = Literal["open", "read", "write"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """A request that has been routed. `format_version` is what its prefix asks tables to be
    shown as, None for each table's own."""

    method: str
    path: str
    parameters: Mapping[str, str]
    query: Mapping[str, str]
    headers: Mapping[str, str]
    body: bytes = field(default=b"", repr=False)
    format_version: int | None = None
    principal: Principal | None = None

    def check(self, right: Literal["read", "write"], *namespaces: Namespace) -> None:
        """403 when the sender may not; for names that are in the body."""
        if self.principal is not None:
            self.principal.check(right, namespaces)

    def named(self, right: Literal["read", "write"], name: Sequence[str]) -> Identifier:
        """What a name in the body means, if the sender may use it so."""
        identifier = Identifier.parse(name)
        self.check(right, identifier.namespace)
        return identifier

    def namespace(self) -> Namespace:
        """The namespace that the path names."""
        return namespace_of(self.parameters["namespace"])

    def identifier(self, kind: str = "table") -> Identifier:
        """The table or view that the path names."""
        return Identifier(namespace=self.namespace(), name=self.parameters[kind])

    def decode(self, shape: type[Shape]) -> Shape:
        """The body as one of the shapes of `wire`."""
        try:
            return msgspec.json.decode(self.body, type=shape)
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            raise bad_request(f"Malformed request: {error}") from error


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """A status and a body: a shape of `wire`, plain values, or bytes of JSON.

    An answer that is still `pending` takes its body from there, and holds no thread until then.
    """

    status: int = 200
    body: Any = None
    headers: Mapping[str, str] = field(default_factory=dict)
    pending: Future[Any] | None = None

    def encoded(self) -> bytes:
        """The body as it is sent."""
        if self.body is None:
            return b""
        return self.body if isinstance(self.body, bytes) else msgspec.json.encode(self.body)


NO_CONTENT = Answer(status=204)
Handler = Callable[["Service", Call], Answer]


@dataclass(frozen=True, slots=True, kw_only=True)
class Endpoint:
    """One endpoint, by the path template of the specification."""

    method: str
    template: str
    handler: Handler
    right: Right = "read"
    again: Handler | None = None
    """What answers a repeated request, where answers are too large to keep."""
    names_in_body: bool = False
    """Whether the handler checks rights itself, on names that it finds in the body."""
    is_advertised: bool = True

    def __str__(self) -> str:
        return f"{self.method} {self.template}"


def namespace_of(text: str) -> Namespace:
    """A namespace as paths and queries spell it."""
    parts = tuple(text.split(SEPARATOR))
    if not all(parts):
        raise InvalidInput(f"namespace {text!r} has an empty level")
    return parts
