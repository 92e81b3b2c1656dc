"""Garbage collection: deletes what no kept version of the catalog needs (design note 018).

run                 `Collector`: time, horizon, mark, plan, delete, close
settings            what is kept, and for how long
clock, errors       the time of a run, by the store's own clock; why a run stops
fence               the commit that moves the horizon, on which everything rests
leases, store_dates ends of pins and intents, and limits of time by the store's dates
history             versions of the catalog itself, their rows, and copies of those that are needed
table_retention     versions of tables that go by age or count
restored_versions   their rows come back if a reference named them meanwhile
expired_versions    manifests of table versions that no kept version of the catalog has
purges              tables that were dropped, and whose time to come back is over
quarantine          quarantined files that no version needs
mark                files that no version of a table names
lost_versions       versions whose manifest is missing: what they need is not known
directories         which directories below the root belong to which table
mark_report         what the mark phase found, as values, JSON and text
scan_state          what runs saw at each location, so that a later one looks where something changed
plan                what goes, stored before the first deletion
delete              deletes what stored plans name
expiring_copies     copies of manifests that are being deleted
report              what a run did, or would do
"""
