"""Jobs on one table: what is asked for, what came of it, and the state of a process that does one after another.

job          an operation with its request, and a change that is staged
reading      reads, of an open version or of the changes of several, and the versions that stay open
sessions     a change under way, staged on one version after another
discarding   removal of the files of a rejected change
"""
