"""Helpers for tests of this engine and of what is built on it."""
