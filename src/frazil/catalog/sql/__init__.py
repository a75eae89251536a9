"""The catalog in a SQL database: SQLite for one machine, PostgreSQL for many writers."""
