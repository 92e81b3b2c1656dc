"""Immutable values of the catalog. No I/O.

identifiers       object ids and locations: what may be a name, and where a table may live
operations        the typed operations that a batch consists of
requests          JSON requests to typed operations; checks form only
entries           what the catalog holds: namespaces, tables, versions, batch records
version_index     the versions of one table branch, in typed columns
state             the maps that make up a snapshot; `state_editor` applies row changes to them
snapshot          the catalog at one version
overlay           changes laid over a snapshot
layered_map, sorted_names    the persistent collections underneath
errors            the namespace errors that the catalog raises
"""
