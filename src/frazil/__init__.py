"""Frazil: tables with an adaptive metadata tree."""
