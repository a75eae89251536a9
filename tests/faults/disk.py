"""A disk whose power can fail: what was not synced by then is gone afterwards.

Replaces the calls that make files, folders and their bytes durable. Bytes count as lost until
their file is synced, and a name until the folder that holds it is.
"""

from __future__ import annotations

import os
import shutil
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from tests.faults.gates import Gate


@dataclass
class Disk:
    """Everything made below a folder since the disk was watched."""

    folder: Path
    gate: Gate
    names: set[str] = field(default_factory=set)
    """Files and folders whose name is not durable."""
    bytes: set[str] = field(default_factory=set)
    """Files whose bytes are not durable."""
    trace: list[str] = field(default_factory=list)
    """What was made durable, in order."""

    def watch(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Stand between the process and its disk."""
        real_open, real_mkdir, real_fsync = os.open, os.mkdir, os.fsync

        def open_file(path: Any, flags: int, *options: Any, **more: Any) -> int:
            if not flags & os.O_CREAT or not self._is_ours(path):
                return real_open(path, flags, *options, **more)
            self.gate(f"create {path}")
            handle = real_open(path, flags, *options, **more)
            self.names.add(str(path))
            self.bytes.add(str(path))
            return handle

        def mkdir(path: Any, *options: Any, **more: Any) -> None:
            if self._is_ours(path):
                self.gate(f"mkdir {path}")
            real_mkdir(path, *options, **more)
            if self._is_ours(path):
                self.names.add(str(path))

        def fsync(handle: int) -> None:
            path = os.readlink(f"/proc/self/fd/{handle}")
            self.gate(f"fsync {path}")
            real_fsync(handle)
            self.bytes.discard(path)
            self.names = {name for name in self.names if os.path.dirname(name) != path}
            if self._is_ours(path):
                self.trace.append(path)

        monkeypatch.setattr(os, "open", open_file)
        monkeypatch.setattr(os, "mkdir", mkdir)
        monkeypatch.setattr(os, "fsync", fsync)

    def _is_ours(self, path: Any) -> bool:
        return str(path).startswith(f"{self.folder}/")

    def lose_what_is_not_synced(self) -> None:
        """The power has failed."""
        for path in self.bytes:
            if os.path.exists(path):
                os.truncate(path, 0)
        for path in sorted(self.names, reverse=True):
            if os.path.isdir(path):
                shutil.rmtree(path)
            elif os.path.exists(path):
                os.unlink(path)
