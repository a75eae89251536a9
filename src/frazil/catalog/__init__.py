"""Who points at the current snapshot: namespaces, tables, and the one pointer per table."""
