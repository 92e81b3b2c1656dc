"""Jobs on one table: what is asked for, what came of it, and the state of a process that does one after another.

job          an operation with its request, and a change that is staged
reading      reads, of an open version or of the changes of several
sessions     a change under way, staged on one version after another
discarding   removal of the files of a rejected change
open_tables  versions that stay open between reads, and for the next change of their table
"""
