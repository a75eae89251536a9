"""Random changes and queries through SQL, of a session of a catalog and of plain DuckDB.

After each statement the rows of all tables must be the same, and those of random queries. A
statement that one of them refuses must be refused by both, except for those that only we refuse: a
row of the table that meets several rows of a source, of which DuckDB takes any.
"""

from __future__ import annotations

import random
from pathlib import Path

from tests.state.sql_queries import SqlQueries
from tests.support.beside_duckdb import BesideDuckDb

_TABLES = ("s.t", "r.t", "s.u")
_VIEW = "r.z"
_OURS_ALONE = "that another source row matched"
_COLUMNS = ("id", "v", "w", "f", "p")
_SCHEMA = '"Id" BIGINT, v BIGINT, "W" VARCHAR, f DOUBLE, p STRUCT(a BIGINT, "B" VARCHAR)'


class SqlChanges:
    """One history of statements, which a seed decides."""

    def __init__(self, seed: int, folder: Path) -> None:
        self._random = random.Random(seed)
        self._folder = folder
        self.ran: list[str] = []
        self._is_open = False
        self._extra = 0
        self._extras: list[str] = []
        self._queries = SqlQueries(self._random, (*_TABLES, _VIEW))

    def run(self, steps: int) -> None:
        """Play it."""
        with BesideDuckDb(self._folder) as db:
            db.both(*(f"CREATE TABLE {table} ({_SCHEMA})" for table in _TABLES))
            for table in _TABLES:
                self._play(db, self._insert(table))
            self._play(db, self._view())
            for _ in range(steps):
                self._play(db, self._statement())
                for _ in range(3):
                    self._ask(db, self._queries.query())
            if self._is_open:
                self._play(db, "COMMIT")

    def _play(self, db: BesideDuckDb, statement: str) -> None:
        self.ran.append(statement)
        ours, theirs = db.change(statement)
        is_ours_alone = ours is not None and _OURS_ALONE in ours
        assert is_ours_alone or (ours is None) == (theirs is None), (statement, ours, theirs)
        if ours is not None and self._is_open:  # DuckDB goes on with no transaction that failed
            self.ran.append("ROLLBACK")
            db.both("ROLLBACK")
            self._is_open = False
        elif is_ours_alone:
            _take_over(db)
        for table in _TABLES:
            mine, other = db.rows(table)
            assert mine == other, (statement, table)

    def _ask(self, db: BesideDuckDb, query: str) -> None:
        self.ran.append(query)
        ours, theirs = db.query(query)
        assert ours == theirs, (query, ours, theirs)
        if theirs is None and self._is_open:  # it may have ended DuckDB's transaction
            self.ran.append("ROLLBACK")
            db.both("ROLLBACK")
            self._is_open = False

    def _statement(self) -> str:
        choices = [self._insert, self._insert, self._update, self._update, self._delete]
        choices += [self._merge, self._merge, self._update_from, self._delete_using]
        number = self._random.random()
        if number < 0.08:
            self._is_open = not self._is_open
            return "BEGIN" if self._is_open else self._random.choice(["COMMIT", "ROLLBACK"])
        if number < 0.16 and not self._is_open:
            return self._altered()
        if number < 0.22 and not self._is_open:
            return self._view()
        return self._random.choice(choices)(self._random.choice(_TABLES))

    def _altered(self) -> str:
        """A column added, dropped or renamed, beside those that statements name."""
        number = self._random.randint(0, 2) if self._extras else 0
        if number == 0:
            self._extra += 1
            self._extras.append(f"x{self._extra}")
            return f"ALTER TABLE s.u ADD COLUMN x{self._extra} BIGINT DEFAULT {self._extra}"
        name = self._extras.pop(self._random.randrange(len(self._extras)))
        if number == 1:
            return f"ALTER TABLE s.u DROP COLUMN {self._name(name)}"
        self._extra += 1
        self._extras.append(f"x{self._extra}")
        return f"ALTER TABLE s.u RENAME COLUMN {self._name(name)} TO x{self._extra}"

    def _view(self) -> str:
        """A view that has the columns of tables in any order, also under names of others."""
        columns = self._random.choice(
            [("id", "v", "w", "f", "p"), ("v", "id", "w", "f", "p"), ("id", "id", "w", "f", "p")]
        )
        pairs = list(zip(_COLUMNS, columns, strict=True))
        self._random.shuffle(pairs)
        named = ", ".join(self._name(name) for name, _ in pairs)
        listed = ", ".join(self._name(column) for _, column in pairs)
        aliased = ", ".join(f"{self._name(column)} AS {self._name(name)}" for name, column in pairs)
        table = self._random.choice(_TABLES)
        where = f" WHERE {self._condition('')}" if self._random.random() < 0.5 else ""
        return self._random.choice(
            [
                f"CREATE OR REPLACE VIEW {_VIEW} ({named}) AS SELECT {listed} FROM {table}{where}",
                f"CREATE OR REPLACE VIEW {_VIEW} AS SELECT {aliased} FROM {table}{where}",
                f"CREATE OR REPLACE VIEW {_VIEW} ({named}) AS SELECT {listed} FROM {table}{where} "
                f"UNION ALL SELECT {listed} FROM {self._random.choice(_TABLES)}",
                f"CREATE OR REPLACE VIEW {_VIEW} AS WITH t ({named}) AS (SELECT {listed} FROM "
                f"{table}) SELECT * FROM t{where}",
            ]
        )

    # Words

    def _name(self, name: str) -> str:
        """A name as somebody may write it: in any case, in quotes or not."""
        spelled = self._random.choice([name.lower(), name.upper(), name.title()])
        return f'"{spelled}"' if self._random.random() < 0.3 else spelled

    def _number(self) -> str:
        return self._random.choice(["NULL", "0", "1", "2", "3", "-1", "9007199254740993"])

    def _text(self) -> str:
        return self._random.choice(["NULL", "''", "'a'", "'it''s'", "'CAST('' AS DATE)'", "$$é$$"])

    def _float(self) -> str:
        return self._random.choice(["NULL", "'NaN'::DOUBLE", "0.0", "1.5", "-2e0", "'inf'::DOUBLE"])

    def _row(self) -> str:
        struct = self._random.choice(["NULL", f"{{'a': {self._number()}, 'B': {self._text()}}}"])
        return f"({self._number()}, {self._number()}, {self._text()}, {self._float()}, {struct})"

    def _value(self, column: str, rows: str) -> str:
        """An expression of a column's type over rows of some name."""
        own = f"{rows}." if rows and self._random.random() < 0.7 else ""
        match column:
            case "id" | "v":
                query = f"(SELECT max(q.v) FROM s.u AS q WHERE q.id = {rows}.{self._name('id')})"
                return self._random.choice(
                    [self._number(), f"{own}{self._name('v')} + 1", f"{own}p.A", query]
                )
            case "w":
                return self._random.choice(
                    [self._text(), f"{own}{self._name('w')} || 'x'", f"upper({own}w)", f"{own}p.b"]
                )
            case "f":
                return self._random.choice([self._float(), f"-{own}{self._name('f')}"])
        return "NULL"

    def _condition(self, rows: str) -> str:
        own = f"{rows}." if rows else ""
        number, name = self._number(), self._name
        parts = [
            f"{own}{name('id')} = {number}",
            f"{own}v IS DISTINCT FROM {number}",
            f"{own}{name('f')} > 1",
            f"NOT ({own}f < 0.5)",
            f"{own}f = 'NaN'",
            f"{own}{name('w')} ~ 'a.*' OR {own}v IS NULL",
            f"{own}w LIKE 'C%'",
            f"{own}p.a IN (0, 1, {number})",
            f"{own}{name('v')} % 2 = 1 AND {own}id + 0 >= 0",
            f"{own}id NOT IN (SELECT q.v FROM r.t AS q WHERE q.v IS NOT NULL)",
            f"EXISTS (SELECT 1 FROM s.u AS q WHERE q.id = {own or 'q.'}{name('id')})",
        ]
        chosen = self._random.sample(parts, self._random.choice([1, 1, 2]))
        return self._random.choice([" AND ", " OR "]).join(f"({part})" for part in chosen)

    # Statements

    def _insert(self, table: str) -> str:
        names = ", ".join(self._name(name) for name in _COLUMNS)
        rows = ", ".join(self._row() for _ in range(self._random.randint(1, 4)))
        if self._random.random() < 0.3:
            other = self._random.choice(_TABLES)
            picked = "id + 10, v, w, f, p"
            return f"INSERT INTO {table} ({names}) SELECT {picked} FROM {other} LIMIT 0"
        return f"INSERT INTO {table} ({names}) VALUES {rows}"

    def _assigned(self, rows: str) -> str:
        columns = self._random.sample(["id", "v", "w", "f"], self._random.randint(1, 2))
        return ", ".join(f"{self._name(c)} = {self._value(c, rows)}" for c in columns)

    def _update(self, table: str) -> str:
        alias = self._random.choice(["", "a", "t", "s"])
        rows = alias or table.partition(".")[2]
        called = f" AS {alias}" if alias else ""
        where = f" WHERE {self._condition(rows)}" if self._random.random() < 0.8 else ""
        return f"UPDATE {table}{called} SET {self._assigned(rows)}{where}"

    def _delete(self, table: str) -> str:
        rows = self._random.choice([table.partition(".")[2], table, ""])
        return f"DELETE FROM {table} WHERE ({self._condition(rows)}) AND v = {self._number()}"

    def _update_from(self, table: str) -> str:
        other = self._random.choice([name for name in _TABLES if name != table])
        aliases = self._random.choice([("a", "b"), ("t", "s"), (None, None)])
        rows, source = aliases[0] or table, aliases[1] or other
        called = [f" AS {alias}" if alias else "" for alias in aliases]
        return (
            f"UPDATE {table}{called[0]} SET v = {source}.v, w = {rows}.w "
            f"FROM {other}{called[1]} WHERE {rows}.{self._name('id')} = {source}.id"
        )

    def _delete_using(self, table: str) -> str:
        other = self._random.choice([name for name in _TABLES if name != table])
        column = self._random.choice([f"{table}.id", self._name("id"), f"{other}.id"])
        return f"DELETE FROM {table} USING {other} WHERE {table}.id = {other}.v AND {column} = 2"

    def _merge(self, table: str) -> str:
        distinct = (
            f"(SELECT DISTINCT ON (id) id, v, w FROM {self._random.choice(_TABLES)} ORDER BY ALL)"
        )
        rows, source = self._random.choice([("a", "b"), ("t", "s"), ("x", "t")])
        on = f"{rows}.{self._name('id')} = {source}.id"
        clauses = self._random.sample(
            [
                f"WHEN MATCHED AND {source}.v = {self._number()} THEN DELETE",
                f"WHEN MATCHED AND {rows}.v IS NULL THEN DO NOTHING",
                f"WHEN MATCHED THEN UPDATE SET v = {source}.v, {self._name('w')} = {rows}.w",
                "WHEN NOT MATCHED AND v > 1 THEN DO NOTHING",
                f"WHEN NOT MATCHED THEN INSERT (id, {self._name('v')}) VALUES (id, {source}.v)",
                "WHEN NOT MATCHED BY SOURCE AND f > 1 THEN DELETE",
                f"WHEN NOT MATCHED BY SOURCE AND v = 3 THEN UPDATE SET w = w || 'n', v = {rows}.id",
            ],
            self._random.randint(1, 3),
        )
        clauses.sort(key=lambda clause: " AND " not in clause)
        return f"MERGE INTO {table} AS {rows} USING {distinct} AS {source} ON {on} " + " ".join(
            clauses
        )


def _take_over(db: BesideDuckDb) -> None:
    """Give DuckDB our rows."""
    for table in _TABLES:
        db.plain.register("ours", db.session.sql(f"SELECT * FROM {table}").to_arrow())
        db.plain.execute(f"DELETE FROM {table}; INSERT INTO {table} SELECT * FROM ours")
        db.plain.unregister("ours")
