"""Random queries over the tables of `SqlChanges`, whose rows do not depend on an order.

Names are written in any case, with and without quotes, and qualified or not; columns are renamed by
WITH, aliases and subqueries; NULL, NaN, structs and numbers that no double holds are compared.
"""

from __future__ import annotations

import random

COLUMNS = ("id", "v", "w", "f", "p")
_KINDS = {"id": "number", "v": "number", "w": "text", "f": "float", "p": "struct"}
_VALUES = {
    "number": ("NULL", "0", "1", "2", "-1", "9007199254740993", "1.5", "'2'"),
    "text": ("NULL", "''", "'a'", "'ax'", "'it''s'", "$$é$$"),
    "float": ("NULL", "'NaN'::DOUBLE", "0.0", "1.5", "-2", "'inf'::DOUBLE"),
    "struct": ("NULL", "{'a': 1, 'B': 'a'}", "{'a': NULL, 'B': NULL}"),
}
_OPERATORS = ("=", "<>", "<", ">=", "IS DISTINCT FROM", "IS NOT DISTINCT FROM")
_JOINS = ("JOIN", "LEFT JOIN", "RIGHT JOIN", "FULL JOIN")


class SqlQueries:
    """Makes queries; `tables` are names with their namespaces, which all have `COLUMNS`."""

    def __init__(self, dice: random.Random, tables: tuple[str, ...]) -> None:
        self._dice = dice
        self._tables = tables
        self._names = 0

    def query(self) -> str:
        """A query of any form."""
        forms = [self._plain, self._grouped, self._joined, self._combined, self._named]
        forms += [self._nested, self._ranked, self._limited]
        return self._dice.choice(forms)()

    # Words

    def _name(self, name: str) -> str:
        spelled = self._dice.choice([name.lower(), name.upper(), name.title()])
        return f'"{spelled}"' if self._dice.random() < 0.3 else spelled

    def _alias(self) -> str:
        """A new name, or one that something else has as well."""
        self._names += 1
        return self._dice.choice(["t", "s", "u", "v", "p", "id", "Q q", f"q{self._names}"])

    def _source(self) -> tuple[str, str]:
        """A table or a subquery with the columns, and what stands before its columns."""
        table = self._dice.choice(self._tables)
        match self._dice.randint(0, 5):
            case 0 | 1:
                return table, self._dice.choice([f"{table}.", f"{table.partition('.')[2]}."])
            case 2 | 3:
                alias = f'"{self._alias()}"'
                return f"{table} AS {alias}", f"{alias}."
            case 4:
                alias = f'"{self._alias()}"'
                return f"(SELECT * FROM {table} WHERE {self._condition('')}) {alias}", f"{alias}."
        other = self._dice.choice(self._tables)
        alias = f'"{self._alias()}"'
        both = f"SELECT id, v, w, f, p FROM {table} UNION ALL SELECT id, v, w, f, p FROM {other}"
        return f"({both}) AS {alias}", f"{alias}."

    def _value(self, kind: str, rows: str) -> str:
        """An expression of a kind."""
        dice = self._dice
        column = rows + self._name(dice.choice([c for c, k in _KINDS.items() if k == kind]))
        more = {
            "number": [
                f"{column} + 1",
                f"-{column}",
                f"{rows}{self._name('p')}.A",
                f"{column} % 2",
            ],
            "text": [f"upper({column})", f"{column} || 'x'", f"{rows}p.b", f"{column}.lower()"],
            "float": [f"-{column}", f"{column} * 2", f"CAST({rows}{self._name('v')} AS DOUBLE)"],
            "struct": [f"coalesce({column}, {{'a': 0, 'B': 'z'}})"],
        }[kind]
        return dice.choice([column, column, column, dice.choice(_VALUES[kind]), *more])

    def _condition(self, rows: str) -> str:
        parts = [self._comparison(rows) for _ in range(self._dice.choice([1, 1, 2, 3]))]
        return self._dice.choice([" AND ", " OR "]).join(f"({part})" for part in parts)

    def _comparison(self, rows: str) -> str:
        dice = self._dice
        kind = dice.choice(list(_VALUES))
        left, right = self._value(kind, rows), dice.choice(_VALUES[kind])
        table = dice.choice(self._tables)
        return dice.choice(
            [
                f"{left} {dice.choice(_OPERATORS)} {right}",
                f"{left} {dice.choice(_OPERATORS)} {self._value(kind, rows)}",
                f"NOT ({left} {dice.choice(_OPERATORS)} {right})",
                f"{left} IS NULL",
                f"{left} IN ({right}, {dice.choice(_VALUES[kind])})",
                f"{left} BETWEEN {right} AND {dice.choice(_VALUES[kind])}",
                f"{rows}w LIKE 'a%'",
                f"{rows}{self._name('id')} IN (SELECT x.v FROM {table} x WHERE {self._tame('x.')})",
                f"{rows}v NOT IN (SELECT x.id FROM {table} AS x WHERE x.id IS NOT NULL)",
                f"EXISTS (SELECT 1 FROM {table} AS x WHERE x.{self._name('id')} = {rows or 'x.'}v)",
                f"{rows}v >= (SELECT max(x.{self._name('v')}) FROM {table} x)",
            ]
        )

    def _tame(self, rows: str) -> str:
        """A condition without a query."""
        return f"{rows}{self._name('v')} {self._dice.choice(_OPERATORS)} 1"

    # Forms

    def _plain(self) -> str:
        source, rows = self._source()
        kinds = [self._dice.choice(list(_VALUES)) for _ in range(self._dice.randint(1, 4))]
        outputs = ", ".join(self._value(kind, rows) for kind in kinds)
        chosen = self._dice.choice(["*", outputs, f"DISTINCT {outputs}", f"{rows}*, {outputs}"])
        return f"SELECT {chosen} FROM {source} WHERE {self._condition(rows)}"

    def _grouped(self) -> str:
        source, rows = self._source()
        key = self._name(self._dice.choice(["id", "v", "w", "f"]))
        having = self._dice.choice(["", f" HAVING {rows}{key} > '1'", " HAVING count(*) > 1"])
        sums = f"count(*), sum({rows}v)::VARCHAR, min({rows}{self._name('f')}), max({rows}w)"
        return (
            f"SELECT {rows}{key}, {sums}, count(DISTINCT {rows}p) FROM {source} "
            f"WHERE {self._condition(rows)} GROUP BY {rows}{key}{having}"
        )

    def _joined(self) -> str:
        left, right = (f'"{self._alias()} {number}"' for number in (1, 2))
        one, other = self._dice.choice(self._tables), self._dice.choice(self._tables)
        kind = self._dice.choice(_JOINS)
        on = f"{left}.{self._name('id')} = {right}.{self._dice.choice(['v', 'id'])}"
        if self._dice.random() < 0.3:
            where = self._dice.choice(["", f" WHERE {left}.id = 1", f" WHERE {right}.v IS NULL"])
            using = f"USING ({self._name('id')})"
            picked = f"id, {left}.v, {right}.w"
            return f"SELECT {picked} FROM {one} {left} {kind} {other} {right} {using}{where}"
        if self._dice.random() < 0.3:
            semi = self._dice.choice(["SEMI", "ANTI"])
            return f"SELECT * FROM {one} {left} {semi} JOIN {other} {right} ON {on}"
        on += self._dice.choice(["", f" AND {self._comparison(f'{left}.')}"])
        where = self._condition(f"{self._dice.choice([left, right])}.")
        return (
            f"SELECT {left}.*, {right}.id, {right}.f FROM {one} {left} {kind} {other} {right} "
            f"ON {on} WHERE {where}"
        )

    def _combined(self) -> str:
        word = self._dice.choice(["UNION", "UNION ALL", "EXCEPT", "INTERSECT", "EXCEPT ALL"])
        sides = []
        for _ in range(2):
            source, rows = self._source()
            kinds = ("number", "text", "float")
            outputs = ", ".join(self._value(kind, rows) for kind in kinds)
            sides.append(f"SELECT {outputs} FROM {source} WHERE {self._condition(rows)}")
        inner = f" {word} ".join(sides)
        if self._dice.random() < 0.5:
            return inner
        value = self._dice.choice(_VALUES["number"][1:5])
        return f"SELECT * FROM ({inner}) AS t(w, id, v) WHERE w = {value}"

    def _named(self) -> str:
        source, rows = self._source()
        columns = self._dice.sample(COLUMNS, 3)
        outputs = ", ".join(f"{rows}{self._name(column)}" for column in columns)
        names = self._dice.sample(["id", "v", "w", "f", "x"], 3)
        kind = _KINDS[columns[0]]
        value = self._dice.choice(_VALUES[kind])
        operator = self._dice.choice(_OPERATORS)
        return (
            f"WITH t({', '.join(names)}) AS (SELECT {outputs} FROM {source}), "
            f"u AS (SELECT * FROM t WHERE {names[0]} {operator} {value}) "
            f"SELECT * FROM u WHERE {names[0]} IS NOT NULL OR {names[1]} IS NULL"
        )

    def _nested(self) -> str:
        source, rows = self._source()
        other = self._dice.choice(self._tables)
        inner = f"SELECT max(x.{self._name('v')}) FROM {other} x WHERE x.id = {rows}id"
        first = self._dice.choice(self._tables)
        return (
            f"SELECT {rows}id, ({inner}), coalesce((SELECT min(f) FROM {first}), 0) "
            f"FROM {source} WHERE {self._condition(rows)}"
        )

    def _ranked(self) -> str:
        source, rows = self._source()
        over = f"(PARTITION BY {rows}{self._name('id')} ORDER BY {rows}v)"
        inner = f"SELECT {rows}id AS i, {rows}w AS w, rank() OVER {over} AS r FROM {source}"
        return f"SELECT * FROM ({inner}) z WHERE r = 1 AND i >= {self._dice.choice('012')}"

    def _limited(self) -> str:
        source, rows = self._source()
        inner = f"SELECT {rows}id, {rows}v, {rows}w FROM {source} ORDER BY ALL LIMIT 3"
        outer = f"SELECT * FROM ({inner}) q WHERE {self._dice.choice(['id', 'v'])} > 0"
        return self._dice.choice([inner, outer])
