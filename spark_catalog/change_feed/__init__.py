"""Changed rows for Spark: those that `table_data.change_feed` finds, divided among tasks.

change_frames    `read_changes`: changes of one table as a DataFrame
change_rows      the changed rows, divided among tasks and read there
"""
