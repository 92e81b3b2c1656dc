"""Operations on the rows of tables: workers compute them with pylance, the catalog commits them.

port            the catalog, and the processes that do the work, as operations need them
request_checks  the check of a request, where it comes in
change_request  a requested change, and what its record holds of that
operations      a change from request to answer: find the table, do the work, commit it as a batch
creation        a table made from rows: name, properties and first version in one flip
uploads         rows that are written before the batch that commits them
multipart       rows that are uploaded in parts, and committed together
reads           a read from request to answer
inline          the same work in this process, for a catalog without a server
"""
