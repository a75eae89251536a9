"""SQL text as DuckDB reads it: its statements, its tokens, and its tree of a query.

The parser that executes is the parser that judges. Nothing here knows tables or catalogs, and no
other package knows how DuckDB shows its tokens and trees, which differ between its versions.

- `tokens`: the tokens of a text, and a cursor over them for statements that DuckDB cannot parse
- `duckdb_parser`: the kinds of statements, trees as JSON, values of constant expressions
- `nodes`, `tree`: queries and expressions as a few types
- `edits`: text put in place of names, checked by parsing the result
- `judge`: what a query may use
"""
