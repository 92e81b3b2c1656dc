"""Immutable values of the catalog. No I/O.

object_ids        the texts of the ids of namespaces, tables, versions and records
naming_rules      checks of names and of locations of tables
root_layout       the catalog's own keys below its root
operations        the typed operations that a batch consists of
request_fields    the fields of JSON requests, with their types
requests          single operations of JSON requests; checks form only
batch_requests    the operations of calls that commit a batch
grant_operations  operations that change grants; `grant_requests`: requests about them
staged_operations operations from work on rows, which come from a worker
entries           the entries of the catalog: namespaces, tables, versions, batch records
history           a batch in the history of the catalog
events            a catalog version as an event
results           the answers of operations: their form on the wire and in records
state             the maps that make up a snapshot; `state_editor` applies row changes to them
table_names       the index of a snapshot by parts of the names of tables
snapshot          the catalog at one version
reached_tables    the tables whose files a place below the root holds
overlay           changes laid over a snapshot
persistent        immutable collections underneath: of entries, of names, of the versions of a branch
promised_fields   which fields each request may have; generated from the OpenAPI document
intent_requests   requests about intents
note_requests     requests that note properties on a transaction; `notes`: these properties
collector_rows    rows that say what may be removed: the collector's own, pins, intents, cursors
intents           files and versions that intents keep
retention         retention that properties of tables and namespaces state
limits            bounds on what one request may hold: sizes, integers, idempotency keys
errors            the namespace errors that the catalog raises
"""
