"""Walks through the code: which module hands an operation to which, recorded while it runs.

A module is entered when the first of its functions is called. It hangs below the module whose call
led there, so that a walk is a tree. Packages below the layers of a table (`BELOW`) are tools of
every module, and are left out.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from importlib import import_module
from types import CodeType, FrameType
from typing import Any

BELOW = frozenset(
    {
        "argument_checks",
        "avro",
        "cancellation",
        "errors",
        "extras",
        "filter",
        "format",
        "limits",
        "parser",
        "properties",
        "storage",
        "text_format",
        "arrow_compute",
        "arrow_parquet",
        "arrow_values",
        "threads",
        "value_classes",
    }
)


@dataclass(kw_only=True)
class Walk:
    """Modules in the order in which they were entered, each with the one that led there."""

    parents: dict[str, str | None] = field(default_factory=dict)
    is_recording: bool = True
    ignored: frozenset[str] = frozenset()
    """Modules that run beside the operation, at times of their own."""
    thread: int = field(default_factory=threading.get_ident)
    _known: set[CodeType] = field(default_factory=set)

    def note(self, frame: FrameType, event: str, _: Any) -> None:
        """A profile function: notes the first call into each module."""
        code = frame.f_code
        if event != "call" or not self.is_recording or code in self._known:
            return
        self._known.add(code)
        module = _module(frame)
        if module in self.ignored:
            return
        is_written = code.co_name != "<module>" and code.co_filename != "<string>"
        if module is None or module in self.parents or not is_written:
            return
        caller = frame.f_back
        while caller is not None and _module(caller) in (None, module, *self.ignored):
            caller = caller.f_back
        if caller is not None:
            self.parents[module] = _module(caller)
        elif threading.get_ident() == self.thread:
            self.parents[module] = None
        else:  # a thread continues what was entered last
            self.parents[module] = next(reversed(self.parents), None)

    def clear(self) -> None:
        """Forget what was recorded, and go on."""
        self._known.clear()
        self.parents.clear()

    def children(self, module: str | None) -> list[str]:
        """The modules that a module led to."""
        return [child for child, parent in self.parents.items() if parent == module]

    def steps(self, *, packages: frozenset[str], before: str) -> list[str]:
        """Modules of the packages that hand on to another of them, or to `before`."""
        steps = []
        for module in self.parents:
            others = {child for child in self.children(module) if _package(child) in packages}
            if _package(module) in packages and (others or before in self.children(module)):
                steps.append(module)
        return steps

    def drawn(self) -> str:
        """The tree as text: modules that lead to others, or that begin another package."""
        return "\n".join(self._lines(None, "", 0)) + "\n"

    def _lines(self, module: str | None, package: str, depth: int) -> Iterator[str]:
        for child in self.children(module):
            below = list(self._lines(child, _package(child), depth + 1))
            if below or _package(child) != package:
                name = "  " * depth + child
                yield f"{name:<44}{_about(child)}".rstrip()
                yield from below


@contextmanager
def recorded() -> Iterator[Walk]:
    """Record what runs inside, in this thread and in those that begin meanwhile."""
    walk = Walk()
    threading.setprofile(walk.note)
    sys.setprofile(walk.note)
    try:
        yield walk
    finally:
        sys.setprofile(None)
        threading.setprofile(None)
        walk.is_recording = False


def _module(frame: FrameType) -> str | None:
    name = frame.f_globals.get("__name__", "")
    if not name.startswith("frazil."):
        return None
    module = str(name.removeprefix("frazil."))
    return None if _package(module) in BELOW else module


def _package(module: str) -> str:
    return module.partition(".")[0]


def _about(module: str) -> str:
    """The beginning of a module's first sentence."""
    first = (import_module(f"frazil.{module}").__doc__ or "").strip().splitlines()[0]
    for end in (". ", ": ", "; ", ", "):
        first = first.partition(end)[0] if len(first) > 70 else first
    return first.rstrip(".,:;")
