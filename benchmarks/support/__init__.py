"""What benchmarks share: servers under test, tables and catalogs made ahead, reports."""
