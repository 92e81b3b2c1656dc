"""Maintenance of the tables of a catalog by policy: many small commits, each rebased or given up like any other.

figures    rows, bytes and work that waits, as far as the manifests of heads are known
run        `Maintenance`: looks at the tables, and works on those that are worth it
fragments  which fragments of a version are worth rewriting; pure
report     what a run did, as values, JSON and text
requested  a request for maintenance of one table, as it comes over the wire; pure
coverage   which indices of a version are worth work; pure
policy     what may be done with a table: properties and defaults; pure
"""
