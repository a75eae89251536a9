"""The name mapping of a table whose columns changed: names of files added before and of today.

A mapping is one per table, so a name can stand for one column only. Names are added as columns come
and are renamed; a name that already stands for another column cannot be added, because files
without field ids that were added before would be read by it.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Self

from frazil.commit.change import Change
from frazil.commit.result import CommitResult
from frazil.errors import FormatError, InvalidInput
from frazil.format.metadata.metadata import TableMetadata
from frazil.value_classes import frozen, replace

if TYPE_CHECKING:
    from frazil.iceberg.name_mapping import MappedField, NameMapping


class Edits(ABC):
    """Applied by `commit`, or by leaving the `with` block without an error."""

    def __init__(self, metadata: TableMetadata, commit: Callable[[Change], object]) -> None:
        self._metadata = metadata
        self._commit = commit
        self._ended = False

    @abstractmethod
    def commit(self) -> CommitResult:
        """Commit the edits, or add them to the transaction."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is None and not self._ended:
            self.commit()

    def _need_open(self) -> None:
        if self._ended:
            raise InvalidInput("these edits are committed already; start new ones")


@frozen
class MergedNames:
    """A mapping with the names of both, and the top-level names that two columns claim."""

    mapping: NameMapping
    disputed: frozenset[str]

    @staticmethod
    def of(known: NameMapping | None, current: NameMapping) -> MergedNames:
        """`known` is what the table has, `current` the names of its columns now."""
        from frazil.iceberg.name_mapping import NameMapping

        disputed: set[str] = set()
        fields = _merged(() if known is None else known.fields, current.fields, disputed, top=None)
        return MergedNames(mapping=NameMapping(fields), disputed=frozenset(disputed))

    def check(self, names: Iterable[str], path: str) -> None:
        """Refuse a file without field ids that has a disputed column."""
        names_found = sorted(self.disputed.intersection(names))
        if names_found:
            raise FormatError(
                "the file has no field ids, and in files added before the name means another "
                "column, since dropped or renamed. Append the rows instead, or write field ids.",
                path=path,
                field=names_found[0],
            )


def _merged(
    mapped: Sequence[MappedField],
    current: Sequence[MappedField],
    disputed: set[str],
    *,
    top: str | None,
) -> tuple[MappedField, ...]:
    """Fields of one level. `top` is the top-level name they lie below."""
    ids_by_name = {name: field.field_id for field in mapped for name in field.names}
    by_id = {field.field_id: field for field in mapped}
    for field in current:
        free = [
            name for name in field.names if ids_by_name.get(name, field.field_id) == field.field_id
        ]
        disputed.update(top or name for name in field.names if name not in free)
        before = by_id.get(field.field_id)
        names = [] if before is None else list(before.names)
        names += [name for name in free if name not in names]
        below = _merged(
            () if before is None else before.fields,
            field.fields,
            disputed,
            top=top or (field.names[0] if field.names else None),
        )
        by_id[field.field_id] = replace(field, names=tuple(names), fields=below)
    return tuple(by_id.values())


__all__ = [
    "Edits",
    "MergedNames",
]
