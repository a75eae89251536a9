"""Peers are judged by what they wrote, tried twice, and named when they fail."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from tests.support.peer_process import PeerFailed, fetch, write_samples

ABORTS_AT_ITS_EXIT = "import os, pathlib, sys; pathlib.Path(sys.argv[1]).touch(); os.abort()"
FAILS_ONCE = """
import pathlib, sys
first = pathlib.Path(sys.argv[2])
if not first.exists():
    first.touch()
    sys.exit("the first run fails")
pathlib.Path(sys.argv[1]).touch()
"""


def _program(text: str, *arguments: Path) -> list[str]:
    return [sys.executable, "-c", text, *map(str, arguments)]


def test_a_peer_that_aborts_after_its_work_has_done_it(tmp_path: Path) -> None:
    done = tmp_path / "done"
    command = _program(ABORTS_AT_ITS_EXIT, done)
    write_samples("a peer", command, complete=done, log=tmp_path / "log")
    assert done.exists()


def test_a_peer_that_fails_is_tried_once_more_in_an_empty_folder(tmp_path: Path) -> None:
    done, prepared = tmp_path / "done", []
    write_samples(
        "a peer",
        _program(FAILS_ONCE, done, tmp_path / "first"),
        complete=done,
        log=tmp_path / "log",
        prepare=lambda: prepared.append("emptied"),
    )
    assert prepared == ["emptied", "emptied"]


def test_a_failure_names_the_peer_and_shows_what_it_said(tmp_path: Path) -> None:
    command = _program("import sys; sys.exit('out of disk')")
    with pytest.raises(PeerFailed, match=r"(?s)somebody else.*out of disk"):
        write_samples("somebody else", command, complete=tmp_path / "done", log=tmp_path / "log")
    with pytest.raises(PeerFailed, match=r"(?s)a package.*out of disk"):
        fetch("a package", command, log=tmp_path / "log")
