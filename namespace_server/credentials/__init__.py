"""Storage options that clients are handed with a table, so that they need no credentials of their own.

vending     what the settings allow, and the vendor that answers
temporary   short-lived credentials for one table: kept, and renewed before they expire
s3          AssumeRole, limited to the table by a session policy
azure       shared access signatures for the directory of the table
google      tokens of the server's account, limited to the table by an access boundary
"""
