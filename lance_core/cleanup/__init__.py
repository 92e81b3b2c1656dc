"""What garbage collection needs of one table: its files, and which of them a manifest names. Deletes nothing.

survey          finds the files of tables that no manifest names
reachability    which files a version needs
kinds           what the files of a table are, by their names; pure
"""
