"""Which interpreter the workers of a session run."""

from __future__ import annotations

import sys
from dataclasses import dataclass, field
from typing import Any

import pytest

pytest.importorskip("pyspark")

from frazil.spark.session.find_table import _use_this_python


@dataclass
class Context:
    """What is asked of Spark's context."""

    master: str = "local[2]"
    pythonExec: str = "python3"  # noqa: N815 - Spark's name
    conf: dict[str, str] = field(default_factory=dict)

    def getConf(self) -> Any:  # noqa: N802 - Spark's name
        return type("Conf", (), {"contains": lambda _, name: name in self.conf})()


@dataclass
class Session:
    """A session with such a context."""

    _sc: Context | None


def python_of(context: Context) -> str:
    _use_this_python(Session(context))
    return context.pythonExec


def test_workers_of_a_local_session_run_this_interpreter(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PYSPARK_PYTHON", raising=False)
    assert python_of(Context()) == sys.executable


def test_a_choice_of_the_user_stands(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PYSPARK_PYTHON", raising=False)
    assert python_of(Context(conf={"spark.pyspark.python": "mine"})) == "python3"
    assert python_of(Context(master="spark://host:7077")) == "python3"
    _use_this_python(Session(None))
    monkeypatch.setenv("PYSPARK_PYTHON", "theirs")
    assert python_of(Context()) == "python3"
