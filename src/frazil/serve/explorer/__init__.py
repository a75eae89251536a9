"""The explorer: a page for people over the served catalog, and the JSON it is made of.

The page is plain files in `static`. Every endpoint answers in columns, never with an object per
file, and opens no more files than the operation that it shows.
"""
