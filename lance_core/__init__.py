"""The transaction engine for the Lance table format.

It knows tables; it knows nothing of catalogs, HTTP or SQL.
"""
