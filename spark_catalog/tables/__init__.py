"""One version of a Lance table, as tasks read it.

types         types of Spark for stored types, batches cast to them, metadata columns
pinned        `PinnedTable`: location and version; opened once in each process
scans         `Scan`: columns, filter, limit, search
splits        from fragments to the splits that tasks read (pure)
planned       `PlannedScan`: a scan of a pinned table with its splits and statistics
reading       the batches of a split
split_server  the Python process of an executor, which reads splits for tasks
frames        planned scans as DataFrames
"""
