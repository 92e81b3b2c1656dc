"""Work in the background of a process, beside its requests.

scheduler      when jobs run, how they end, what they report; below the catalog, whose recovery is one of them
gc             the job that starts garbage collections, each in a process of its own
maintenance    the job that maintains tables
name_search    the job that makes the index of the names of tables
periods        which of the servers on a root does the work of a period
"""
