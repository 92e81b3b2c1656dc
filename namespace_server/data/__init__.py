"""Operations on the rows of tables: worker processes compute them with pylance, the catalog commits them.

port        what is needed of a catalog, and of those who do the work
workers     a bounded pool of worker processes
inline      the same work in this process, for a catalog without a server
operations  from a request to its answer: find the table, do the work, commit it as a batch
creation    a table made from rows: name, properties and first version in one flip
"""
