"""Text to filters, types, partition specs and sort orders, and filters to text."""
