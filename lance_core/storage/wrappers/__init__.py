"""Stores around a store: counting, delaying."""
