"""Statements of SQL, by kind.

dml              INSERT, UPDATE, DELETE, MERGE: the function of the tasks, and the operations that their reports become
creation         CREATE TABLE, and CREATE and REPLACE with rows
alterations      ALTER TABLE
scanning         plans of scans
changelogs       ranges and scans of `CHANGES`
travel           earlier versions
metadata_tables  `t.history` and its like
procedures       `CALL lance.system.*`
grants           those about who may do what
"""
