"""Statements carried out."""
