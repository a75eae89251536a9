"""The tables that a query names."""

from __future__ import annotations

from collections.abc import Iterator

from frazil.parser import nodes as n

_Paths = frozenset[tuple[str, ...]]


def named_tables(query: n.Query, ctes: _Paths = frozenset()) -> Iterator[n.TableRef]:
    """The tables and table functions of a query and of all queries inside it, but not the names
    that WITH defines where they can be seen. A recursive query with keys sees all rows it has so
    far as `recurring.name`."""
    visible = ctes
    for cte in query.ctes:  # each sees those before it, and itself if it is recursive
        name = cte.name.lower()
        own = {(name,), ("recurring", name)} if cte.is_recursive else set()
        yield from named_tables(cte.query, visible | own)
        visible |= {(name,)}
    if isinstance(query, n.Select):
        for ref in n.walk_tables(query.source):
            if isinstance(ref, n.BaseTable):
                if tuple(part.lower() for part in ref.path) not in visible:
                    yield ref
            elif isinstance(ref, n.TableFunction):
                yield ref
    for inner in n.direct_queries(query):
        yield from named_tables(inner, visible)
