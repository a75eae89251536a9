"""Everything that can go wrong, grouped by what the caller does next.

    FrazilError
     ├─ InvalidInput        fix the call: a bad name, filter, schema, row or option
     ├─ NotFound            name something that exists: table, namespace, snapshot, ref, file
     ├─ AlreadyExists       choose another name
     ├─ CommitConflict      another commit changed what this one relies on; re-run on fresh data
     ├─ CommitUnknown       the outcome is not known; check before retrying
     ├─ FormatError         a file is corrupt or from a newer writer
     ├─ Unsupported         a feature that this version, or this engine, does not have
     ├─ StorageError        the file system or object store failed
     └─ CatalogError        the catalog database or service failed

Every error carries a stable `kind`; messages say what was found, where, and what was expected.
Programs test the class or the `kind`, never the message text.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

_SECRET_NAME = (
    r"[\w.\-]*(?:password|passwd|pwd|secret|token|credential"
    r"|(?:access|account|private|api|shared)[-_.]?key|connection[-_.]?string)[\w.\-]*"
)
_USERINFO = re.compile(r"(?<=://)([^\s:/@'\"]*):[^\s'\"]*@")
_PAIR = re.compile(rf"\b({_SECRET_NAME}|sig)=[^\s&;,'\")]+", re.IGNORECASE)
_ITEM = re.compile(rf"(['\"]{_SECRET_NAME}['\"]\s*:\s*)(['\"]).*?\2", re.IGNORECASE)


def redacted(text: str) -> str:
    """A text without passwords in addresses, and without the values of what is named like a secret.

    >>> redacted("mysql://me:hunter2@db/x?password=abc")
    'mysql://me:***@db/x?password=***'
    """
    text = _USERINFO.sub(r"\1:***@", text)
    text = _PAIR.sub(r"\1=***", text)
    return _ITEM.sub(r"\1\2***\2", text)


class FrazilError(Exception):
    """Base of every error Frazil raises on purpose. Its message shows no secret."""

    kind: ClassVar[str] = "error"
    exit_code: ClassVar[int] = 1

    def __init__(self, *parts: object) -> None:
        super().__init__(*(redacted(part) if isinstance(part, str) else part for part in parts))

    def __str__(self) -> str:
        """The message, which can be printed whatever it quotes."""
        return super().__str__().encode("utf-8", "backslashreplace").decode()


class InvalidInput(FrazilError):
    """Invalid arguments or input.

    `is_certain` means that no other reading of the input would be valid.
    """

    kind = "invalid-input"
    exit_code = 2

    def __init__(self, *message: object, is_certain: bool = False) -> None:
        self.is_certain = is_certain
        super().__init__(*message)


class NotFound(FrazilError):
    """A table, snapshot, branch, tag or file was not found."""

    kind = "not-found"
    exit_code = 3


class AlreadyExists(FrazilError):
    """The name is already in use."""

    kind = "already-exists"
    exit_code = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class Conflict:
    """One reason why a change cannot be replayed on the current head."""

    what: str
    where: str
    by_snapshot_id: int | None = None

    def __str__(self) -> str:
        by = "" if self.by_snapshot_id is None else f" (snapshot {self.by_snapshot_id})"
        return f"{self.what}: {self.where}{by}"


class CommitConflict(FrazilError):
    """Another commit changed what this one relies on. Lists every conflict found."""

    kind = "commit-conflict"
    exit_code = 5

    def __init__(self, message: str, conflicts: Sequence[Conflict] = ()) -> None:
        self.conflicts = tuple(conflicts)
        shown = "".join(f"\n  - {conflict}" for conflict in self.conflicts[:20])
        more = len(self.conflicts) - 20
        super().__init__(message + shown + (f"\n  … and {more} more" if more > 0 else ""))


class CommitUnknown(FrazilError):
    """The connection was lost during a commit; it may or may not have landed."""

    kind = "commit-unknown"
    exit_code = 6


class FormatError(FrazilError):
    """A file is corrupt or was written by a newer version. Names the file and the field."""

    kind = "format"
    exit_code = 7

    def __init__(self, problem: str, *, path: str | None = None, field: str | None = None) -> None:
        self.problem = problem
        self.path = path
        self.field = field
        where = ": ".join(part for part in (path, field) if part)
        super().__init__(f"{where}: {problem}" if where else problem)

    def at(self, path: str) -> FormatError:
        """The same problem, naming the file it was found in."""
        return self if self.path else FormatError(self.problem, path=path, field=self.field)


class Unsupported(FrazilError):
    """A feature that is not supported; the error names it."""

    kind = "unsupported"
    exit_code = 8

    def __init__(self, message: str, *, feature: str | None = None) -> None:
        self.feature = feature
        super().__init__(message)


class StorageError(FrazilError):
    """Reading, writing, listing or deleting a file failed."""

    kind = "storage"
    exit_code = 9


class CatalogError(FrazilError):
    """The catalog database or service failed."""

    kind = "catalog"
    exit_code = 10
