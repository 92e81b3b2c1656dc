"""The process that does the work on rows, and what it is told by the server."""
