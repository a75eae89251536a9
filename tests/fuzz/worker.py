"""`python -m tests.fuzz.worker ROUNDS SEED`: decodes damaged files, with little memory.

Every outcome but a result or one of our errors is printed as a line of JSON, with what gives the
same bytes again.
"""

from __future__ import annotations

import json
import random
import resource
import signal
import sys
import time
import traceback
from types import FrameType

from frazil.errors import FrazilError
from tests.fuzz.samples import SAMPLES

MEMORY_BYTES = 2 << 30
"""What decoding one file of a few kilobytes may take: more than a limit of ours, with overhead."""
SECONDS = 20
_EXTREMES = (b"\xff" * 4, b"\xff" * 8, b"\x7f" + b"\xff" * 3, b"\xff" * 3 + b"\x7f", bytes(4))
_VARINTS = (b"\xfe\xff\xff\xff\x0f", b"\xfe\xff\xff\xff\xff\xff\xff\xff\xff\x01", b"\x01", b"\x00")


class TooSlow(Exception):
    """Decoding did not end in time."""


def damaged(data: bytes, chance: random.Random) -> bytes:
    """The bytes with one to three things changed."""
    for _ in range(chance.choice((1, 1, 2, 3))):
        at = chance.randrange(len(data)) if data else 0
        until = min(len(data), at + chance.randrange(1, 9))
        match chance.randrange(8):
            case 0:
                data = data[:at]
            case 1:
                data = data[:at] + chance.randbytes(chance.randrange(1, 9)) + data[at:]
            case 2:
                data = data[:at] + data[until:]
            case 3:
                data = data[:until] + data[at:]
            case 4:
                new = chance.choice(_EXTREMES)
                data = data[:at] + new + data[at + len(new) :]
            case 5:
                new = chance.choice(_VARINTS)
                data = data[:at] + new + data[at + 1 :]
            case 6:
                data = data[:at] + chance.randbytes(until - at) + data[until:]
            case _:
                if data:
                    data = data[:at] + bytes([data[at] ^ 1 << chance.randrange(8)]) + data[at + 1 :]
    return data


def _stop(_: int, __: FrameType | None) -> None:
    raise TooSlow


def _limit_memory() -> None:
    with open("/proc/self/statm", encoding="ascii") as stat:
        now = int(stat.read().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (now + MEMORY_BYTES, now + MEMORY_BYTES))


def run(rounds: int, seed: int) -> int:
    """Decode `rounds` damaged files of every kind; how many went wrong."""
    for data, decode in SAMPLES.values():
        try:
            decode(data)  # loads what it needs, before memory is limited
        except FrazilError:
            continue
    _limit_memory()
    signal.signal(signal.SIGALRM, _stop)
    wrong = 0
    for name, (data, decode) in SAMPLES.items():
        for number in range(rounds):
            changed = damaged(data, random.Random(f"{seed} {name} {number}"))
            began = time.monotonic()
            signal.alarm(SECONDS)
            try:
                decode(changed)
            except FrazilError:
                pass
            except (Exception, MemoryError) as error:
                wrong += 1
                trace = traceback.format_exc().splitlines()[-6:]
                told = {"decoder": name, "seed": seed, "round": number, "error": repr(error)}
                told |= {"seconds": round(time.monotonic() - began, 1), "at": trace}
                print(json.dumps(told), flush=True)
            finally:
                signal.alarm(0)
    return wrong


if __name__ == "__main__":
    sys.exit(1 if run(int(sys.argv[1]), int(sys.argv[2])) else 0)
