"""One request and its answer, without a web framework: what every endpoint takes and returns."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from typing import TYPE_CHECKING, Any, Literal, TypeVar

import msgspec

from frazil.cancellation import Cancellation
from frazil.catalog.names import Identifier, Namespace
from frazil.errors import InvalidInput
from frazil.serve.access.rights import Names, Rights, Role
from frazil.serve.wire.json_bodies import decoded
from frazil.value_classes import dataclass, field

if TYPE_CHECKING:
    from frazil.serve.access.principals import Principal
    from frazil.serve.service import Service

SEPARATOR = "\x1f"
"""What separates the levels of a namespace in a path."""
Shape = TypeVar("Shape")
Right = Literal["read", "write"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
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
    cancellation: Cancellation = field(default_factory=Cancellation, repr=False)
    """Is cancelled when the sender has gone, or the time is up."""

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
        return decoded(self.body, shape)


@dataclass(frozen=True, slots=True, kw_only=True)
class Response:
    """A status and a body: a shape of `wire`, plain values, or bytes of JSON.

    An answer that is still `pending` takes its body from there, and holds no thread until then; a
    result that is an answer takes the place of this one. After `patience_s`, `give_up` is called,
    which must end the waiting.
    """

    status: int = 200
    body: Any = None
    headers: Mapping[str, str] = field(default_factory=dict)
    pending: Future[Any] | None = None
    patience_s: float | None = None
    give_up: Callable[[], object] | None = None

    def encoded(self) -> bytes:
        """The body as it is sent."""
        if self.body is None:
            return b""
        return self.body if isinstance(self.body, bytes) else msgspec.json.encode(self.body)


NO_CONTENT = Response(status=204)
Handler = Callable[["Service", Request], Response]


@dataclass(frozen=True, slots=True, kw_only=True)
class Endpoint:
    """One endpoint, by the path template of the specification, and who may use it."""

    method: str
    template: str
    handler: Handler
    rights: Rights
    again: Handler | None = None
    """What answers a repeated request, where answers are too large to keep."""
    lane: Literal["quick", "queries", "statements"] = "quick"
    """Where it is worked on. What may take long is no quick request: a plan, a SQL statement, a
    page about a table, maintenance."""
    takes_much: bool = False
    """Whether bodies may be as large as commits are."""
    is_advertised: bool = True

    def __post_init__(self) -> None:
        if not isinstance(self.rights, Rights):
            raise TypeError(f"{self}: rights is {self.rights!r}; expected Rights")
        if ("{namespace}" in self.template) != (self.rights.names is Names.PATH):
            raise ValueError(f"{self}: its rights do not concern the namespace of its path")
        if self.rights.role is Role.NOBODY and self.rights.names is not Names.NONE:
            raise ValueError(f"{self}: nobody has no namespace")

    def __str__(self) -> str:
        return f"{self.method} {self.template}"


def namespace_of(text: str) -> Namespace:
    """A namespace as paths and queries spell it."""
    parts = tuple(text.split(SEPARATOR))
    if not all(parts):
        raise InvalidInput(f"namespace {text!r} has an empty level")
    return parts
