"""Spark SQL over a catalog server: the Python side of the catalog whose Java side is in `spark_java/`.

settings          options of a Spark session with the catalog
blocks            `lance_transaction`: a transaction of several statements as a `with` block
process           the Python process beside the driver, which Java starts
service           operations that Java calls
statements        what each kind of statement does
access            `Access`: the catalog as statements use it
sessions          the open transaction of a session, and its statements
tables            tables as Java holds them
transactions      `SqlTransaction`: statements on one snapshot, taken back one by one
schemas           schemas of Spark and of Arrow
catalog_requests  requests to the server for namespaces, lists, names, tags and branches
errors            exceptions
"""
