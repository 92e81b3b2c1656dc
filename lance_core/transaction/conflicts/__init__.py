"""Conflict rules: whether a transaction may follow another one that was committed first.

rules              the entry point: `judge` picks the rules of an operation
verdicts           the possible verdicts
rows               Append, Overwrite, Delete and Update
layout             Rewrite and DataReplacement
indices            CreateIndex
whole_tables       UpdateConfig, Merge, Project, Restore, ReserveFragments, UpdateBases and UpdateMemWalState

`commit.prepare` asks for each version that was committed meanwhile. A manifest that a client built itself is not judged
here: whether it descends from the head is found by `transaction.lineage`.
"""
