"""Damaged files of every format end in a result or in one of our errors, soon and in little memory.

`make test` decodes the same few for ever; `make search` decodes many new ones and prints the seed.
"""

from __future__ import annotations

import os
import secrets
import subprocess
import sys

import pytest

from tests.fuzz.samples import SAMPLES

ROUNDS = int(os.environ.get("FRAZIL_FUZZ_ROUNDS", "60"))
SEED = 7 if "FRAZIL_FUZZ_ROUNDS" not in os.environ else secrets.randbits(32)


@pytest.mark.parametrize("name", SAMPLES)
def test_the_undamaged_file_is_read(name: str) -> None:
    data, decode = SAMPLES[name]
    decode(data)


@pytest.mark.timeout(7200)
def test_damaged_files_end_in_our_errors() -> None:
    command = [sys.executable, "-m", "tests.fuzz.worker", str(ROUNDS), str(SEED)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"seed {SEED}:\n{done.stdout}\n{done.stderr[-3000:]}"
