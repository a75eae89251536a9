"""Names of namespaces and tables, and where a table of a name lives.

A name may hold any character. As text, levels are separated by dots; a dot inside a level is
written `%2E`. Folders below the warehouse are made of harmless characters only. Knows nothing of
databases.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import total_ordering

from frazil.errors import InvalidInput
from frazil.format.checks import check_text
from frazil.value_classes import frozen

Namespace = tuple[str, ...]

MAX_LENGTH = 255
"""What the `iceberg_tables` columns hold: a whole namespace with its dots, or a table name."""
_MAX_BYTES = 255
"""What file systems take as the name of a folder."""
_ROOM = 16
"""Bytes that are left for what makes a folder another one."""

_ESCAPE = re.compile(r"%(?=25|2E)|\.")
_ESCAPED = re.compile(r"%(25|2E)")
_MARK = "~"
_AMBIGUOUS = re.compile(rf"[.{_MARK}]")
_HARMFUL = re.compile(r"[/\\?#%\x00-\x1f\x7f]")


@total_ordering
@frozen
class Identifier:
    """A table's full name: a namespace of one level or more, and the name in it."""

    namespace: Namespace
    name: str

    def __str__(self) -> str:
        return f"{dotted(self.namespace)}.{_escaped(self.name)}"

    def __lt__(self, other: object) -> bool:
        if not isinstance(other, Identifier):
            return NotImplemented
        return (self.namespace, self.name) < (other.namespace, other.name)

    @staticmethod
    def parse(name: str | Sequence[str] | Identifier) -> Identifier:
        """From `"namespace.table"` or its parts; refuses what is not a name."""
        if isinstance(name, Identifier):
            return name
        parts = _parts(name)
        if len(parts) < 2:
            raise InvalidInput(f"{name!r} has no namespace; expected 'namespace.table'")
        _check_length(parts[-1])
        return Identifier(namespace=namespace_of(parts[:-1]), name=parts[-1])


def namespace_of(name: str | Sequence[str]) -> Namespace:
    """A namespace from `"a.b"` or its parts; refuses what is not a name."""
    parts = _parts(name)
    _check_length(dotted(parts))
    return parts


def dotted(namespace: Namespace) -> str:
    """A namespace as text, which is how the database stores it."""
    return ".".join(_escaped(part) for part in namespace)


def undotted(text: str) -> Namespace:
    """The levels of a namespace given as text."""
    return tuple(
        _ESCAPED.sub(lambda match: "%" if match[1] == "25" else ".", part)
        for part in text.split(".")
    )


def table_location(warehouse: str, identifier: Identifier) -> str:
    """Where a table goes by default. Namespaces are one folder each, so that no table's folder
    can lie inside another table's."""
    return f"{namespace_location(warehouse, identifier.namespace)}/{folder_name(identifier.name)}"


def namespace_location(warehouse: str, namespace: Namespace) -> str:
    """The folder of a namespace, which no other namespace has. Levels are joined by dots; a name
    that would not be told apart that way has a digest of itself behind it."""
    parts = [_safe(part) for part in namespace]
    folder = ".".join(parts)
    is_ambiguous = any(
        part != safe or _AMBIGUOUS.search(part) for part, safe in zip(namespace, parts, strict=True)
    )
    if is_ambiguous or len(folder.encode()) > _MAX_BYTES:
        folder = _digested(folder, dotted(namespace), max_bytes=_MAX_BYTES)
    return f"{warehouse.rstrip('/')}/{folder}"


def _escaped(part: str) -> str:
    return _ESCAPE.sub(lambda match: "%2E" if match[0] == "." else "%25", part)


def folder_name(part: str) -> str:
    """A part of a name as a folder: nothing that could lead elsewhere or be decoded, and no more
    than a file system takes, with room for a few characters behind it."""
    safe = _safe(part)
    most = _MAX_BYTES - _ROOM
    return safe if len(safe.encode()) <= most else _digested(safe, part, max_bytes=most)


def _safe(part: str) -> str:
    safe = _HARMFUL.sub("_", part)
    inner = safe.strip(" ")
    if inner != safe or inner.strip(".") == "":
        return f"_{inner.replace('.', '_')}_"
    return safe


def _digested(folder: str, name: str, *, max_bytes: int) -> str:
    """A folder with a digest of its name behind it, cut where it would be too long."""
    import hashlib  # which loads OpenSSL

    end = f"{_MARK}{hashlib.sha256(name.encode()).hexdigest()[:12]}".encode()
    return (folder.encode()[: max_bytes - len(end)] + end).decode(errors="ignore")


def _parts(name: str | Sequence[str]) -> tuple[str, ...]:
    if isinstance(name, bytes) or not isinstance(name, str | Sequence):
        raise InvalidInput(f"{name!r} is not a name; expected text, as in 'namespace.table'")
    parts = undotted(name) if isinstance(name, str) else tuple(name)
    if not parts:
        raise InvalidInput("a name is empty")
    for part in parts:
        if not isinstance(part, str):
            raise InvalidInput(f"{name!r}: {part!r} is not text")
        if not part:
            raise InvalidInput(f"{name!r} has an empty part")
        if not part.isprintable() and any(ord(c) < 32 or ord(c) == 127 for c in part):
            raise InvalidInput(f"{name!r}: {part!r} holds a control character")
        check_text(part, f"a part of the name {name!r}")
    return parts


def _check_length(name: str) -> None:
    if len(name) > MAX_LENGTH:
        raise InvalidInput(f"{name[:40]!r}… has {len(name)} characters; at most {MAX_LENGTH}")
