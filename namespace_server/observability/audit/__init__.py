"""The log of refused attempts.

lines    an attempt as a line of JSON, within bounds
folding  which of many attempts have a line of their own
files    a directory of lines: rotation, bounds, retention
log      the queue, and the thread that writes it
reading  lines of a directory, newest first, in pages
"""
