"""The catalog: a directory of Lance tables and the `__manifest` dataset that lists its contents.

    doctor            examines a catalog from its storage alone
    backup            copies one version of a catalog to another store, and restores it
    root_check        says whether a directory or bucket can be the root of a catalog
    namespace         `DirectoryNamespace`, the catalog as a `lance_namespace.LanceNamespace`
    json_api          reads and changes as JSON, which REST serves
    catalog_tables    the tables of the catalog, for operations on rows
    references        changes of tags, branches and notes, which write files beside the flip
    adoption          takes over a root that stock clients made
    properties        the properties of `DirectoryNamespace`
    gc                garbage collection: deletes what no kept version needs
    calls, reading    a change on its way from the route to the flip; answers, and the response cache
    catalog           composition root: one root with everything below wired together
    recovery          the background sweep: unmanaged manifests, branch ref files, the lost-version check
    committing        commits batches in groups: plan, write, claim, prove, decide, promote
    verifying         reads what a batch refers to on storage, before it is planned
    planning          decides what a batch changes, without I/O
    maintenance       compaction and indices of tables, by policy
    multipart_uploads  what the store has of uploads in parts
    writable          whether the root can be written
    manifests         manifests of table versions: where they lie, reading, caches, canonical names
    manifest_table    `__manifest` as a Lance dataset: load, refresh, flip
    model             immutable values: identifiers, operations, entries, snapshots

Each package imports only packages below it in this list.
"""
