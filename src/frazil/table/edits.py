"""Edits that are collected and committed together, once."""

from __future__ import annotations

from abc import ABC, abstractmethod
from types import TracebackType
from typing import Self

from frazil.commit.result import CommitResult
from frazil.errors import InvalidInput


class Edits(ABC):
    """Applied by `commit`, or by leaving the `with` block without an error."""

    def __init__(self) -> None:
        self._ended = False

    @abstractmethod
    def commit(self) -> CommitResult:
        """Commit the edits, or add them to the transaction."""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if kind is None and not self._ended:
            self.commit()

    def _need_open(self) -> None:
        if self._ended:
            raise InvalidInput("these edits are committed already; start new ones")
