"""Writing from Spark tasks. Nothing here reads the catalog.

row_writes     rows and changed rows of SQL statements and merges, and the reports of their tasks
staging        data files of a DataFrame, written by tasks or by the driver
arrow_batches  size of the batches in which Spark passes rows to tasks
"""
