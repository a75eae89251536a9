"""Storage and heads with a gate before and after every call, where a test can step in.

A gate can crash the process (nothing works from then on, clean-up included), run another writer's
whole operation, or lose the catalog's reply.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any

import frazil
from frazil.commit.head import Draft, Head, Landed, Outcome, State, Unknown
from frazil.errors import CatalogError
from frazil.storage import LocalStorage


class Crash(BaseException):
    """The process is gone."""


@dataclass
class Gate:
    """Counts the calls that pass and does something at the one it is set to."""

    at: int = 0
    action: Callable[[], None] | None = None
    passed: int = 0
    is_dead: bool = False
    names: list[str] = field(default_factory=list)

    def __call__(self, name: str) -> None:
        if self.is_dead:
            raise Crash(name)
        self.passed += 1
        self.names.append(name)
        if self.passed == self.at:
            if self.action is None:
                self.is_dead = True
                raise Crash(name)
            self.action()


class GatedStorage:
    """Local files behind a gate."""

    def __init__(self, gate: Gate) -> None:
        self._gate = gate
        self._inner = LocalStorage()

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._inner, name)
        if name not in ("read", "open", "write_new", "create", "exists", "size", "delete"):
            return found

        def gated(path: str, *args: Any, **options: Any) -> Any:
            self._gate(f"before {name} {path}")
            result = found(path, *args, **options)
            self._gate(f"after {name} {path}")
            return result

        return gated

    def delete_all(self, paths: Iterable[str]) -> None:
        for path in paths:
            self.delete(path)

    def list(self, prefix: str) -> Iterator[Any]:
        self._gate(f"before list {prefix}")
        return self._inner.list(prefix)


class GatedHead:
    """A table's head behind the same gate; `loses` replies of swaps that did or did not happen."""

    def __init__(self, inner: Head, gate: Gate, *, loses: str | None = None) -> None:
        self._inner = inner
        self._gate = gate
        self._loses = loses

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)

    def load(self) -> State:
        self._gate("before load")
        return self._inner.load()

    def swap(self, base: State, draft: Draft) -> Outcome:
        self._gate("before swap")
        if self._loses == "before":
            self._loses = None
            return Unknown(cause=CatalogError("connection lost"))
        outcome = self._inner.swap(base, draft)
        self._gate("after swap")
        if self._loses == "after" and isinstance(outcome, Landed):
            self._loses = None
            return Unknown(cause=CatalogError("connection lost"))
        return outcome

    def landed(self, snapshot_id: int) -> State | None:
        self._gate("before landed")
        return self._inner.landed(snapshot_id)


def gated(table: frazil.Table, gate: Gate, *, loses: str | None = None) -> frazil.Table:
    """The same table, with every call of its storage and head behind a gate."""
    handle = table._handle
    storage: Any = GatedStorage(gate)
    head: Any = GatedHead(handle.head, gate, loses=loses)
    context = replace(handle.context, storage=storage)
    return frazil.Table(replace(handle, head=head, context=context), branch_name=table.branch_name)
