"""The data source `lance` of Spark: tables by path or by their name in a catalog.

data_source  `LanceDataSource`: what Spark calls
options      options of reads and writes
resolving    from options to one version of a table
reader       splits and rows of a read
writer       staging in tasks, commit or abort on the driver
"""
