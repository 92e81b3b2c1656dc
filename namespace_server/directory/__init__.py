"""The catalog: a directory of Lance tables and the `__manifest` dataset that lists its contents.

    doctor, root_check
                      examine a catalog from its storage, and whether a place can be the root of one
    namespace         `DirectoryNamespace`, the catalog as a `lance_namespace.LanceNamespace`
    adoption          takes over a root that stock clients made
    calls, reading    a change on its way from the route to the flip; answers, and the response cache
    catalog           composition root: one root with everything below wired together
    recovery          the background sweep: unmanaged manifests, branch ref files, the lost-version check
    committing        commits batches: verify, group, flip with retries, promote
    planning          decides what a batch changes, without I/O
    manifest_table    `__manifest` as a Lance dataset: load, refresh, flip
    model             immutable values: identifiers, operations, entries, snapshots

Each package imports only packages below it in this list.
"""
