"""Removes from a catalog what nothing needs any more (design note 018).

run                `Collector`: time, fence, look, plan, sweep, close
settings           what is kept, and for how long
clock              the time of a run, by the store's own clock
history            versions of the catalog itself, their rows, and copies of those that are needed
fence              the flip on which everything rests
expired_versions   manifests of table versions that no kept version of the catalog has
purges             tables that were dropped, and whose time to come back is over
stored_plan        what goes, stored before the first removal
sweep              removes what stored plans name
report             what a run did, or would do
"""
