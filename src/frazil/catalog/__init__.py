"""The catalog: namespaces, tables, and one pointer per table to its current snapshot."""
