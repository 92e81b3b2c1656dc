"""The data source `lance` of Spark: tables by path or by their name in a catalog.

data_source    `LanceDataSource`: what Spark calls
batch_reader   splits and rows of a read
batch_writer   staging in tasks, commit or abort on the driver
stream_source  stream of the rows that versions of a table add or change
stream_sink    sink of a stream: one table, each epoch once
resolving      from options to one version of a table
"""
