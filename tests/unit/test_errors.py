"""Messages hide secrets wherever they stand; a long text takes as long as it is long."""

from __future__ import annotations

import subprocess
import sys

import pytest

from frazil.errors import MAX_MESSAGE, InvalidInput, redacted

LONG = 1_000_000
CPU_SECONDS = 60
"""Many times what reading these texts takes; reading them once per letter takes hours."""
PIECES = (
    "a.",
    "a",
    "password",
    "password ",
    "-",
    "://a:",
    "://",
    "://a:b@",
    "a@",
    "'password': '",
    '"token" ',
    "token=",
    "'a': \"",
    "=",
    "access_",
    " ",
    "\n",
)
_READ = f"""
import resource, sys
resource.setrlimit(resource.RLIMIT_CPU, ({CPU_SECONDS}, {CPU_SECONDS}))
from frazil.errors import redacted
piece = sys.stdin.read()
print(len(redacted(piece * ({LONG} // len(piece)))))
"""


@pytest.mark.parametrize("piece", PIECES)
def test_a_long_text_is_read_once(piece: str) -> None:
    done = subprocess.run(
        [sys.executable, "-c", _READ],
        input=piece,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, f"used more than {CPU_SECONDS} s of CPU {done.stderr[-500:]}"


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("a=password=hunter2", "a=password=***"),
        ("x&token=hunter2&y=1", "x&token=***&y=1"),
        (
            "{'s3.secret-access-key': 'hunter2', 'a': 'b'}",
            "{'s3.secret-access-key': '***', 'a': 'b'}",
        ),
        ("{'secret': 'hunter2", "{'secret': '***"),
        ("{\"token\" : 'hunter2'}", "{\"token\" : '***'}"),
        ("sv=1&sig=hunter2", "sv=1&sig=***"),
        ("design=nice", "design=nice"),
        ("-password=hunter2", "-password=***"),
        ("a@b://c", "a@b://c"),
        ("'x://me:hunter2@db' and 'y://you:hunter2@db'", "'x://me:***@db' and 'y://you:***@db'"),
        ("password=", "password="),
    ],
)
def test_a_secret_is_hidden_wherever_it_stands(text: str, shown: str) -> None:
    assert redacted(text) == shown


def test_a_message_that_quotes_much_is_cut_after_its_secrets_are_hidden() -> None:
    text = "x" * (MAX_MESSAGE - 30) + " mysql://me:" + "hunter2" * 1_000 + "@db"
    message = str(InvalidInput(text))
    assert "hunter2" not in message
    assert len(str(InvalidInput("y" * 10_000_000))) < MAX_MESSAGE + 100


_PARSE = f"""
import resource
resource.setrlimit(resource.RLIMIT_CPU, ({CPU_SECONDS}, {CPU_SECONDS}))
from frazil.iceberg.schema import Schema
from frazil.iceberg.types import LongType, NestedField
from frazil.errors import FrazilError
from frazil.filter.text.partition_by import parse_partition_by
from frazil.filter.text.partition_by import parse_sort_order
from frazil.paimon.read.data_types import parse_type
schema = Schema(NestedField(1, "a", LongType(), required=False))
gap = " " * {LONG}
texts = [f"a{{gap}}b", f"a{{gap}}desc nulls{{gap}}x", f"bucket[{{gap}}", f"bucket{{gap}}x"]
for parse, argument in (
    *((parse_sort_order, [text]) for text in texts),
    *((parse_partition_by, [text]) for text in texts),
    *((parse_type, text) for text in texts),
):
    try:
        parse(argument, *(() if parse is parse_type else (schema,)))
    except FrazilError:
        pass
"""


def test_long_gaps_in_terms_and_types_are_read_once() -> None:
    done = subprocess.run(
        [sys.executable, "-c", _PARSE], capture_output=True, text=True, timeout=300, check=False
    )
    assert done.returncode == 0, f"used more than {CPU_SECONDS} s of CPU {done.stderr[-500:]}"
