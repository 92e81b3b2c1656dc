"""Changes that also write or remove files beside the manifests of a table. They block, and take as long as storage.

tags               tags: a file each, confirmed by a flip
clones             shallow clones of tables: where their source is
transaction_notes  properties that clients note on a transaction
changes            all of them, by the names of their operations; the deletion of a branch
change_context     the catalog, for one change
"""
