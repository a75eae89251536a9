"""One request and its answer, without a web framework: what every endpoint takes and returns.

Bodies are JSON of a known shape, bounded in depth and in the number of values.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from typing import TYPE_CHECKING, Any, Literal, TypeVar

import msgspec
import numpy as np

from frazil.cancellation import Cancellation
from frazil.catalog.names import Identifier, Namespace
from frazil.errors import InvalidInput
from frazil.serve.access.rights import Names, Rights, Role
from frazil.serve.limits import MAX_JSON_DEPTH, MAX_JSON_VALUES, MIB
from frazil.serve.rest_errors import bad_request
from frazil.value_classes import dataclass, field, frozen

if TYPE_CHECKING:
    from frazil.serve.access.principals import Principal
    from frazil.serve.service import Service

SEPARATOR = "\x1f"
"""What separates the levels of a namespace in a path."""
Shape = TypeVar("Shape")
Right = Literal["read", "write"]
_STEPS = np.zeros(256, dtype=np.int8)


@frozen
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


@frozen
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


@dataclass(frozen=True, slots=True)
class Endpoint:
    """One endpoint, by the path template of the specification, and who may use it. The first four
    are given by position, so that a list of endpoints reads as a table."""

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


_STEPS[list(b"[{")] = 1
_STEPS[list(b"]}")] = -1
_QUOTE, _COMMA = b'",'


def decoded(data: bytes, shape: type[Shape], *, max_depth: int = MAX_JSON_DEPTH) -> Shape:
    """A body as a shape; 400 when it is not one, so deep that what reads it would fail, or of so
    many values that they would take much more memory than their text."""
    depth, values = _size(data, skips_texts=False)
    if depth > max_depth or values > MAX_JSON_VALUES:
        depth, values = _size(data, skips_texts=True)
    if depth > max_depth:
        raise bad_request(f"Malformed request: nested more than {max_depth} levels deep")
    if values > MAX_JSON_VALUES:
        raise bad_request(f"Malformed request: more than {MAX_JSON_VALUES} values")
    try:
        return msgspec.json.decode(data, type=shape)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise bad_request(f"Malformed request: {error}") from error


def _size(data: bytes, *, skips_texts: bool) -> tuple[int, int]:
    """How deep brackets are nested, and how many values commas part. A piece at a time: what is
    measured may be too large."""
    if skips_texts:
        data = data.replace(rb"\\", b"").replace(rb"\"", b"")
    deepest = level = in_text = 0
    values = 1
    for start in range(0, len(data), MIB):
        piece = np.frombuffer(data, dtype=np.uint8, count=min(MIB, len(data) - start), offset=start)
        if skips_texts:
            inside = np.cumsum(piece == _QUOTE, dtype=np.int32) + in_text
            in_text = int(inside[-1]) % 2
            piece = piece[inside % 2 == 0]
        if len(piece):
            levels = np.cumsum(_STEPS[piece], dtype=np.int32)
            deepest = max(deepest, level + int(levels.max()))
            level += int(levels[-1])
            values += int(np.count_nonzero(piece == _COMMA))
    return deepest, values
