"""Jobs on one table: what is asked for, what came of it, and the state of a process that does one after another.

job            an operation with its request, and a change that is staged
sessions       a change under way, staged on one version after another
discarding     removal of the files of a rejected change
open_tables    datasets that stay open between reads
open_versions  versions that stay open for the next change of their table
"""
