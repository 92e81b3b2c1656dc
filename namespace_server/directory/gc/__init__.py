"""Garbage collection: deletes what no kept version of the catalog needs (design note 018).

run                 `Collector`: time, horizon, mark, plan, delete, close
settings            what is kept, and for how long
horizon             the commit on which a run rests: its time, the horizon, leases that end
history             versions of the catalog itself, their rows, and copies of those that are needed
table_retention     rows of table versions that go by age or count
restored_versions   they come back if a reference named the version meanwhile
expired_versions    manifests of table versions that no kept version of the catalog has
purges              tables that were dropped, and whose time to come back is over
quarantine          quarantined files that no version needs
mark                unreferenced files of tables
lost_versions       versions whose manifest is missing, so that it is unknown what they need
directories         which directories below the root belong to which table
scan_state          what runs saw at each location, so that a later one looks where something changed
plan                what goes, stored before the first deletion
delete              deletes what stored plans name
report              what a run found and did, or would do: values, JSON and text

What is garbage outside of tables is found by functions like `quarantine.find_quarantined`, which yield a `plan.Removal`
for each object; `Collector._removals` calls them. The files of tables that nothing names are found by
`lance_core.cleanup.survey`, which knows their kinds and dates; `MarkPhase` has it look, and judges what it found.
"""
