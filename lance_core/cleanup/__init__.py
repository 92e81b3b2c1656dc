"""The files of one table, and which of them its manifests name, for garbage collection. Deletes nothing.

survey          finds the files of tables that no manifest names
reachability    which files a version needs
kinds           what the files of a table are, by their names; pure
"""
