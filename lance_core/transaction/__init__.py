"""What a transaction says, whether it may follow others, and the manifest that it leads to.

Nothing in this package does I/O.
"""
