"""What users are told when a task on an executor fails."""

from __future__ import annotations

import pytest

pytest.importorskip("pyspark")

from pyspark.errors import PySparkException

from frazil.errors import FrazilError, InvalidInput
from frazil.spark.session.executor_tasks import groups, plain_errors

TRACE = """Job aborted due to stage failure: Task 0 in stage 3.0 failed 4 times:
org.apache.spark.api.python.PythonException: Traceback (most recent call last):
  File "worker.py", line 1, in main
{last}

	at org.apache.spark.api.python.BasePythonRunner$ReaderIterator.handlePythonException
"""


def failed(last: str) -> FrazilError:
    with pytest.raises(FrazilError) as found, plain_errors():
        raise PySparkException(message=TRACE.format(last=last))
    return found.value


def test_executors_without_the_package_are_named_with_the_setting() -> None:
    told = str(failed("ModuleNotFoundError: No module named 'frazil'"))
    assert told.startswith("the Python of Spark's executors has no frazil")
    assert "PYSPARK_PYTHON" in told
    assert "Traceback" not in told


def test_a_refusal_keeps_its_kind_and_every_line_of_its_list() -> None:
    text = "rows do not fit:\n  - column 'a': null\n  - column 'b': too long"
    found = failed(f"frazil.errors.InvalidInput: {text}")
    assert isinstance(found, InvalidInput)
    assert str(found) == text


def test_what_is_not_ours_passes() -> None:
    with pytest.raises(PySparkException, match="ZeroDivisionError"), plain_errors():
        raise PySparkException(message=TRACE.format(last="ZeroDivisionError: division by zero"))


def test_groups_are_filled_up_to_the_target() -> None:
    assert groups([4, 4, 4, 9, 1], 8) == [[0, 1], [2], [3], [4]]
    assert groups([1, 1, 1], 8, cost=3) == [[0, 1], [2]]
    assert groups([], 8) == []
