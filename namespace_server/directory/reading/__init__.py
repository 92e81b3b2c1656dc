"""Answers to reads, with the exact wire names.

sight             the catalog as one caller may see it: what is hidden is not there
visible_history   what one caller may see of the history
read_context      one snapshot for one answer; notes what the answer depends on
adopting_reads    snapshots and answers that adopt the commits of others above a head
descriptions      answers about namespaces, tables and the catalog
table_versions    answers about table versions; a table at one, for work on its rows
fragments         answers about the fragments of a version, and their files
change_ranges     the versions of a table between two catalog versions
grants            answers about grants, and whether somebody may do something
events            answers about events, and about the cursors of their consumers
references        answers about tags and branches
transactions      answers about transactions and batches
commit_results    answers to committed operations
response_cache    cached answers, and when an entry is valid; never authoritative
arrow_json        Arrow schemas in the JSON form of the namespace API
"""
