"""Work on the rows of one table: changes and queries, computed by pylance and committed by others.

staging           what one operation does to a version, its files written: rows, merges, columns, indices
table_changes     several operations on one table, each applied to the version that the one before it left
composition       those operations as the transactions of a batch
batch_operations  operations of a batch about one table, and their JSON
descriptions      operations of the engine from uncommitted results of pylance
merging           the clauses of a merge
"""
