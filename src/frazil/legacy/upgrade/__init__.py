"""Tables of v1 to v3 become format-version 4, in place."""
