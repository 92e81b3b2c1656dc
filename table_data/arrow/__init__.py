"""Rows as Arrow bytes and tables."""
