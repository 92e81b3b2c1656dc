"""Work that a server does beside what it is asked for.

gc             starts garbage collections, each in a process of its own
maintenance    maintains tables
periods        which of the servers on a root does the work of a period
"""
