"""Paimon tables read where they are: planned, merged and followed, without being adopted."""
