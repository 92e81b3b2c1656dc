"""The catalog: a directory of Lance tables and the `__manifest` dataset that lists its contents.

    doctor          examines a catalog from its storage alone, and repairs what it can prove
    backup          copies one catalog version to another store, verifies it, restores it under another root
    root_check      whether a directory or bucket can be a root, by requests in a directory of its own
    namespace       `DirectoryNamespace`, the catalog as a `lance_namespace.LanceNamespace`
    json_api        reads and changes as JSON, which REST serves
    catalog_tables  the tables of the catalog, for operations on rows
    references      changes of tags, branches and notes, which also write files beside the catalog
    adoption        takes over a root that stock clients made
    properties      the properties of `DirectoryNamespace`
    gc              garbage collection
    calls           a change that is checked, and how it is answered
    reading         answers to reads, the read context, the response cache
    catalog         the composition root: one root, with everything below wired together
    recovery        the sweep: unmanaged manifests, branch ref files, the check for a lost newest version
    committing      groups batches; the commit loop; fairness between servers; record housekeeping
    verifying       what a batch refers to on storage, read before it is planned
    planning        what a batch changes, judged against one snapshot; nothing is written
    writable        whether the root can be written
    manifests       the manifests of versions: where they lie, reading, caches, canonical names (promotion)
    manifest_table  `__manifest` as a dataset: schema, load, refresh, flip
    model           immutable values: identifiers, operations, entries, snapshots

Each package imports only packages below it in this list.
"""
