"""Tables as users see them.

dataset           `Dataset`: open, read, commit, branch, tag
references        resolves a version, time, tag or branch to a committed version
branches          create, list and delete branches
tags              create, move, list and delete tags
ref_files         the small files that tags and branches are stored in
stored_files      compares the files that versions name with storage
time_travel       which version was the newest at a given time
"""
