"""Finish what a process left behind, and deal with what other writers did.

foreign_manifests    files that others put under canonical names: set aside, committed again where possible
branch_refs          ref files of branches, written or removed to match the catalog
witness              detects the loss of the newest version of `__manifest`
"""
