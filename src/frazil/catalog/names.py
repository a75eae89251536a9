"""Names of namespaces and tables, and where a table of a name lives.

A name becomes part of a path below the warehouse, so nothing that could lead out of it, or make
two names one path, is a name. Knows nothing of databases.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from urllib.parse import unquote

from frazil.errors import InvalidInput

Namespace = tuple[str, ...]

MAX_LENGTH = 255
"""What the `iceberg_tables` columns hold: a whole namespace with its dots, or a table name."""

_REFUSED = frozenset("/\\?#")


@dataclass(frozen=True, slots=True, kw_only=True, order=True)
class Identifier:
    """A table's full name: a namespace of one level or more, and the name in it."""

    namespace: Namespace
    name: str

    def __str__(self) -> str:
        return f"{dotted(self.namespace)}.{self.name}"

    @staticmethod
    def parse(name: str | Sequence[str] | Identifier) -> Identifier:
        """From `"namespace.table"` or its parts; refuses what is not a name."""
        if isinstance(name, Identifier):
            return name
        parts = _parts(name)
        if len(parts) < 2:
            raise InvalidInput(f"{name!r} names no namespace; expected 'namespace.table'")
        _check_length(parts[-1])
        return Identifier(namespace=namespace_of(parts[:-1]), name=parts[-1])


def namespace_of(name: str | Sequence[str]) -> Namespace:
    """A namespace from `"a.b"` or its parts; refuses what is not a name."""
    parts = _parts(name)
    _check_length(dotted(parts))
    return parts


def dotted(namespace: Namespace) -> str:
    """A namespace as the database stores it."""
    return ".".join(namespace)


def table_location(warehouse: str, identifier: Identifier) -> str:
    """Where a table goes by default. Namespaces are one folder each, so that no table's folder
    can lie inside another table's."""
    return f"{warehouse.rstrip('/')}/{dotted(identifier.namespace)}/{identifier.name}"


def _parts(name: str | Sequence[str]) -> tuple[str, ...]:
    if isinstance(name, str):
        parts = tuple(name.split("."))
    else:
        parts = tuple(name)
        for part in parts:
            if isinstance(part, str) and "." in part and part not in (".", ".."):
                raise InvalidInput(f"{part!r} holds a dot, which separates names")
    if not parts:
        raise InvalidInput("a name is empty")
    for part in parts:
        _check(part, name)
    return parts


def _check(part: object, whole: object) -> None:
    if not isinstance(part, str):
        raise InvalidInput(f"{whole!r}: {part!r} is not text")
    if not part:
        raise InvalidInput(f"{whole!r} has an empty part")
    if part != part.strip():
        raise InvalidInput(f"{whole!r}: {part!r} starts or ends with a space")
    # Some file systems decode percent signs in paths, so the decoded name must be harmless too.
    for form in (part, unquote(part)):
        if form in (".", "..") or any(c in _REFUSED or not c.isprintable() for c in form):
            raise InvalidInput(
                f"{whole!r}: {part!r} could lead out of the warehouse; names hold no /, \\, ?, #, "
                "control character, and are not . or .."
            )


def _check_length(name: str) -> None:
    if len(name) > MAX_LENGTH:
        raise InvalidInput(f"{name[:40]!r}… has {len(name)} characters; at most {MAX_LENGTH}")
