"""Clients that misbehave, many at once, until their time is up: run as a script beside a server.

    python -m tests.support.rude_clients http://127.0.0.1:8181 SECONDS CLIENTS TABLE_KEY

They read nothing of large answers, send headers and bodies a byte at a time, send bodies of any
size, leave in the middle of queries, take turns that they do not use, and connect to say nothing.
"""

from __future__ import annotations

import asyncio
import json
import random
import sys
import time
from collections import Counter
from collections.abc import Awaitable, Callable
from urllib.parse import urlsplit

MIB = 1 << 20
NEW = "/v1/namespaces"
WHO = "Host: 127.0.0.1\r\nAuthorization: Bearer rude\r\n"
LOAD = "/v1/namespaces/shop/tables/orders"
HEAVY = "select count(*) from range(100000000000) a, range(1000000000) b"
LARGE = (
    "select md5(range::varchar) from range(20000000) order by 1",
    "select list(range) from range(3000000)",
)
Connected = tuple[asyncio.StreamReader, asyncio.StreamWriter]


class Rude:
    """The clients of one process."""

    def __init__(self, uri: str, seconds: float, key: str) -> None:
        parts = urlsplit(uri)
        assert parts.hostname is not None
        self._host, self._port = parts.hostname, parts.port or 80
        self._end = time.monotonic() + seconds
        self._key = key
        self.done: Counter[str] = Counter()

    @property
    def kinds(self) -> tuple[Callable[[], Awaitable[None]], ...]:
        """What a client can do wrong."""
        return (
            self.reads_nothing,
            self.sends_headers_slowly,
            self.sends_a_body_slowly,
            self.sends_a_huge_body,
            self.sends_a_body_without_end,
            self.leaves_a_plan,
            self.leaves_a_statement,
            self.asks_for_memory,
            self.sends_very_many_values,
            self.takes_turns,
            self.says_nothing,
            self.filters_by_very_much,
        )

    async def client(self, number: int) -> None:
        """One client: the same mistake again and again."""
        kind = self.kinds[number % len(self.kinds)]
        name = getattr(kind, "__name__", "?")
        while time.monotonic() < self._end:
            try:
                async with asyncio.timeout(max(0.1, self._end - time.monotonic())):
                    await kind()
                    self.done[name] += 1
            except (OSError, asyncio.IncompleteReadError, TimeoutError):
                self.done[f"{name}, cut off"] += 1
            await asyncio.sleep(random.random() * 0.2)

    async def _open(self) -> Connected:
        return await asyncio.open_connection(self._host, self._port, limit=4_096)

    async def _post(self, path: str, body: bytes, *, headers: str = "") -> Connected:
        reader, writer = await self._open()
        writer.write(
            f"POST {path} HTTP/1.1\r\n{WHO}Content-Type: application/json\r\n"
            f"{headers}Content-Length: {len(body)}\r\n\r\n".encode()
            + body
        )
        return reader, writer

    async def reads_nothing(self) -> None:
        _, writer = await self._open()
        writer.write(f"GET {LOAD} HTTP/1.1\r\n{WHO}\r\n".encode() * 8)
        writer.write(
            f"POST {LOAD}/plan HTTP/1.1\r\n{WHO}Content-Length: 2\r\n\r\n{{}}".encode() * 8
        )
        await asyncio.sleep(5)
        writer.close()

    async def sends_headers_slowly(self) -> None:
        _, writer = await self._open()
        for letter in f"GET {LOAD} HTTP/1.1\r\nHost: {'x' * 60}":
            writer.write(letter.encode())
            await writer.drain()
            await asyncio.sleep(0.3)
        writer.close()

    async def sends_a_body_slowly(self) -> None:
        _, writer = await self._open()
        writer.write(f"POST {NEW} HTTP/1.1\r\n{WHO}Content-Length: 1000\r\n\r\n".encode())
        for _ in range(30):
            writer.write(b" ")
            await writer.drain()
            await asyncio.sleep(0.5)
        writer.close()

    async def sends_a_huge_body(self) -> None:
        reader, writer = await self._open()
        writer.write(f"POST {NEW} HTTP/1.1\r\n{WHO}Content-Length: {60 * MIB}\r\n\r\n".encode())
        for _ in range(60):
            writer.write(b" " * MIB)
            await writer.drain()
        await reader.read(100)
        writer.close()

    async def sends_a_body_without_end(self) -> None:
        _, writer = await self._open()
        writer.write(
            f"POST {LOAD}/plan HTTP/1.1\r\n{WHO}Transfer-Encoding: chunked\r\n\r\n".encode()
        )
        for _ in range(200):
            writer.write(b"100000\r\n" + b"[" * MIB + b"\r\n")
            await writer.drain()
        writer.close()

    async def leaves_a_plan(self) -> None:
        values = json.dumps(
            {"filter": {"type": "in", "term": "order_id", "values": [*range(5000)]}}
        )
        _, writer = await self._post(f"{LOAD}/plan", values.encode())
        await asyncio.sleep(0.2)
        writer.close()

    async def leaves_a_statement(self) -> None:
        _, writer = await self._statement(HEAVY)
        await asyncio.sleep(0.5)
        writer.close()

    async def asks_for_memory(self) -> None:
        reader, writer = await self._statement(random.choice(LARGE))
        await reader.read(100)
        writer.close()

    async def _statement(self, sql: str) -> Connected:
        reader, writer = await self._open()
        writer.write(f"GET /explorer/api/session HTTP/1.1\r\n{WHO}\r\n".encode())
        head = await reader.readuntil(b"\r\n\r\n")
        size = int(head.lower().split(b"content-length:")[1].split(b"\r\n")[0])
        token = json.loads(await reader.readexactly(size))["token"]
        writer.close()
        body = json.dumps({"sql": sql}).encode()
        headers = f"X-Frazil-Session: {token}\r\n"
        return await self._post("/explorer/api/sql", body, headers=headers)

    async def sends_very_many_values(self) -> None:
        updates = b'{"action":"set-properties","updates":{"a":"b"}},' * (10 * MIB // 50)
        body = b'{"requirements":[],"updates":[' + updates[:-1] + b"]}"
        reader, writer = await self._post(LOAD, body)
        await reader.read(100)
        writer.close()

    async def takes_turns(self) -> None:
        body = json.dumps({"key": self._key, "writer": "hoarder"}).encode()
        reader, writer = await self._post("/v1/frazil/take-turn", body)
        await reader.read(100)
        writer.close()

    async def says_nothing(self) -> None:
        _, writer = await self._open()
        await asyncio.sleep(5)
        writer.close()

    async def filters_by_very_much(self) -> None:
        values = json.dumps(
            {"filter": {"type": "in", "term": "order_id", "values": [*range(100_000)]}}
        )
        reader, writer = await self._post(f"{LOAD}/plan", values.encode())
        await reader.read(100)
        writer.close()


async def _run(uri: str, seconds: float, clients: int, key: str) -> None:
    rude = Rude(uri, seconds, key)
    await asyncio.gather(*(rude.client(number) for number in range(clients)))
    print(json.dumps(rude.done))


if __name__ == "__main__":
    asyncio.run(_run(sys.argv[1], float(sys.argv[2]), int(sys.argv[3]), sys.argv[4]))
