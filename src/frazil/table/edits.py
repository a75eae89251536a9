"""Edits that are collected and committed together, once."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Self

from frazil.commit.change import Change
from frazil.commit.result import CommitResult
from frazil.errors import InvalidInput
from frazil.format.metadata import TableMetadata


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
