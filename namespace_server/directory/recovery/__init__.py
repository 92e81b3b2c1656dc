"""Finish what a process left open, and deal with what other writers did.

background           the sweep: its steps, in order
unmanaged_manifests    files of other writers under canonical names: quarantined, committed again where possible
branch_refs          ref files of branches
lost_version         detects the loss of the newest version of `__manifest`
"""
