"""Apache Paimon tables: read, inspected and taken over in place."""
