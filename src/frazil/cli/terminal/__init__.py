"""What commands print: tables, drawings, rows in every format, and the SQL shell."""
