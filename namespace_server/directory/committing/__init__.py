"""Commit batches.

committer             verifies batches, commits them in groups, answers each
commit_loop           the commit loop: plan, write, claim, prove, decide, promote; after a conflict again
flip_queue            batches that wait, and the thread that flips them
attempt_writing       writes what an attempt makes reachable, and looks at storage beside it
unmanaged_rounds      what stands above the heads of a group, from one try to the next
group_planner         plans each batch of a group on the overlay of those before it
write_fairness        lets servers that share a root flip by turns
failed_attempts       removes the files of attempts that are in no history
record_housekeeping   closes records, removes rows that are gone or expired; carried by flips
"""
