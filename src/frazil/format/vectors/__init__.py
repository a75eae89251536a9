"""Deletion vectors: bitmaps of positions, and the Puffin files they are stored in."""
