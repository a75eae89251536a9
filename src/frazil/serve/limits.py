"""Every limit of the server, in the order in which a request meets them.

Those on connections, headers and bodies hold before anything is known of the sender. A limit that
depends on a machine or its users is a setting (`Settings`, options of `frazil serve`); its default
stands here. Whoever meets a limit of its own is answered 429, a full server answers 503; both say
with Retry-After when to come again, and nothing has been done.
"""

from __future__ import annotations

from typing import Final

KIB: Final = 1 << 10
MIB: Final = 1 << 20

# --- connections ---------------------------------------------------------------------------------

MAX_CONNECTIONS: Final = 512
"""Open at once. When there are more, the one that has been idle, or has been sending its request,
for longest is closed. Setting `max_connections`."""
MAX_HEADER_BYTES: Final = 64 * KIB
"""Of a request line and its headers, beyond what arrives with their first byte."""
MAX_HEADER_S: Final = 15.0
"""From a new connection, or the first byte of a request, to the end of its headers."""
KEEP_ALIVE_S: Final = 75
"""How long a connection may idle between requests; clients that keep them close them sooner."""
MAX_UNREAD_S: Final = 30.0
"""How long a client may read nothing of an answer that waits for it."""
MAX_UNREAD_BYTES: Final = 32 * MIB
"""Of all answers that wait for their clients; beyond, the client that reads least is cut off."""

# --- bodies --------------------------------------------------------------------------------------

MAX_BODY_BYTES: Final = 16 * MIB
"""Of one request that commits, or appends: the history of 20,000 commits fits. Setting
`max_request_bytes`."""
MAX_QUESTION_BYTES: Final = 1 * MIB
"""Of any other request: filters, statements, names."""
MAX_BODIES_BYTES: Final = 32 * MIB
"""Of all requests that are being received or answered."""
MAX_UNWANTED_BYTES: Final = 1 * MIB
"""Of a body that still arrives after its request was refused."""
MAX_BODY_S: Final = 120.0
MAX_BODY_PAUSE_S: Final = 15.0
"""Between two pieces of a body."""
MAX_JSON_VALUES: Final = 100_000
"""Values of a body, which take twenty times their bytes once they are read; a column has five."""
MAX_JSON_DEPTH: Final = 200
"""Nesting of brackets in a body; about three levels per nested struct of a schema."""

# --- work ----------------------------------------------------------------------------------------

REQUEST_TIMEOUT_S: Final = 600.0
"""For an answer. Setting `request_timeout_s`."""
QUICK_THREADS: Final = 32
"""Requests answered at once, those of queries aside."""
MAX_QUICK_WAITING: Final = 480
MAX_QUICK_PER_PRINCIPAL: Final = 256
"""Answered and waiting, where senders are known by their tokens."""
MAX_QUERIES: Final = 4
"""Plans and pages of the explorer worked on at once, and half as many SQL statements. Setting
`max_queries`: more make each of them, and commits beside them, slower."""
MAX_QUERIES_WAITING: Final = 64
MAX_QUERIES_PER_PRINCIPAL: Final = 16
"""Worked on and waiting, of each kind, where senders are known. Setting
`max_queries_per_principal`."""
QUERY_TIMEOUT_S: Final = 60.0
"""For a query. Setting `query_timeout_s`."""
MAX_QUERY_MEMORY: Final = 96 * MIB
"""What the engine of one SQL statement may use; there are few at once because of it. Setting
`max_query_memory`."""
MAX_MEMORY_MIB: Final = 4096
"""What `frazil serve` may allocate in all. DuckDB does not count the memory of one call, and
`range(3000000000)` is one. Option `--max-memory`."""
SIGN_IN_THREADS: Final = 4
MAX_SIGN_IN_WAITING: Final = 508
"""Requests whose token waits to be checked, which may need keys from an identity provider."""
RETRY_AFTER_S: Final = 1
"""What a refused client is told to wait."""

# --- commits -------------------------------------------------------------------------------------

MAX_TURNS: Final = 256
"""Turns of clients that are waited for or held, of all tables."""
MAX_TURNS_PER_PRINCIPAL: Final = 64
FIRST_TURN_S: Final = 0.5
"""From when a client gets its turn to when it loses it: others wait as long for one that does not
use its turn."""
MAX_TURN_S: Final = 5.0
"""The same where clients need longer for their commits."""
MAX_TURN_WAIT_S: Final = 30.0
"""For a turn; a client that waited longer goes on without one."""
TURN_THREADS: Final = 8
"""Tables whose turns clients have at the same time."""
MAX_TURN_EXPIRIES: Final = 3
"""Turns that a client may let expire in `TURN_REST_S` before it gets no others."""
TURN_REST_S: Final = 30.0
MAX_APPENDS_WAITING: Final = 1_024
"""Of one table."""
MAX_ENTRIES_BYTES: Final = 8 * MIB
"""Of one append's entries."""
MAX_HEADS: Final = 256
"""Tables that are kept loaded for Frazil's own clients."""
MAX_APPENDS_OF_A_GROUP: Final = 64
"""Those that come later make the next group."""
MAX_GATHER_S: Final = 0.04
"""How long a group waits for writers of the last one, at most as long as that one took."""
GROUP_THREADS: Final = 8
"""Tables whose groups are committed at the same time."""

# --- answers that are kept -----------------------------------------------------------------------

MAX_DOCUMENTS_BYTES: Final = 16 * MIB
"""Of metadata documents that were shown lately; one of a table with a long history is megabytes."""

KEPT_FILES_S: Final = 600
"""How long data files are kept that a client deletes when it gets no answer."""

# --- plans and pages -----------------------------------------------------------------------------

MAX_FILTER_PARTS: Final = 10_000
"""Conditions and values of the filter of a plan."""
MAX_FILTER_DEPTH: Final = 400
"""Nesting of conditions; a body that holds a filter may be nested a little deeper."""
MAX_PLAN_FILES: Final = 4_000
"""Of one part of a plan."""
MAX_PLAN_BYTES: Final = 8 * MIB
"""Of one part of a plan, about."""
MIN_PLAN_FILES: Final = 8
"""Of one part of a plan whose filter is so long that fewer would fit."""
MAX_PLAN_STATE_BYTES: Final = 2 * MIB
"""Of a token, unpacked."""
MAX_PLAN_ID: Final = 2_000
"""Characters of a plan id, which is part of an address; a longer plan is fetched by tokens only."""
MAX_SQL_ROWS: Final = 5_000
MAX_PAGE_ROWS: Final = 1_000
"""Rows that a statement, or a page of the explorer, shows."""
MAX_PAGE_COLUMNS: Final = 16
MAX_PAGE_ENTRIES: Final = 500
MAX_PAGE_COMMITS: Final = 10_000
MAX_PAGE_TABLES: Final = 500
MAX_HISTORY_STEPS: Final = 64
"""Snapshots that are read to tell what became of a file."""
