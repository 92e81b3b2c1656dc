"""Recovery: unfinished work of any process is finished, and files of other writers are dealt with.

background            the sweep: its steps, in order
unmanaged_manifests   files of other writers under canonical names: quarantined, committed again where possible
recommits             the operation that commits the transaction of a quarantined file again
branch_refs           ref files of branches
branch_removal        removes the files of deleted branches
lost_version          detects the loss of the newest version of `__manifest`
backup_note           the time of the last backup of the root, for the metrics
"""
