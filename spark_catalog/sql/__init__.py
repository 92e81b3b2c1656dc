"""Spark SQL over a catalog server: the Python side of the catalog that the jar in this package gives to Spark.

settings         options of a Spark session with the catalog
blocks           `lance_transaction`: a transaction of several statements as a `with` block
process          the Python process beside the driver, which Java starts
service          operations that Java calls
sessions         the open transaction of a session, and its statements
transactions     `SqlTransaction`: statements on one snapshot, taken back one by one
tables           tables as Java holds them
scanning         plans of scans
changelogs       ranges and scans of `CHANGES`
writing          what tasks wrote, as operations of a batch
creation         CREATE and REPLACE
alterations      ALTER TABLE
travel           earlier versions
metadata_tables  `t.history` and its like
procedures       `CALL lance.system.*`
tasks            what tasks of writes run
schemas          schemas of Spark and of Arrow
server           requests to the server
errors           exceptions
java/            sources of the jar
"""
