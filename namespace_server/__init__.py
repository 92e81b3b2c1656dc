"""The Lance namespace catalog server.

directory       the catalog of one directory or bucket
access          who may do what: subjects, grants, the policy of a snapshot
data            operations on rows of its tables
workers         processes that do the work on rows, and their pools
credentials     storage options that clients are handed
rest            the catalog over HTTP: routes, errors, middleware
background      the scheduler, and the jobs of a server
observability   metrics, traces, logs
store           the external manifest store in a database; the only package that imports SQLAlchemy
app             the ASGI application
serving         listening, TLS, bounds of connections, signals, graceful shutdown
cli             the command `lance-namespace`
settings        its settings; their types and sources: `setting_types`, `setting_sources`
read_only       whether a server takes changes
attempts        where a request came from, and the checks that decided it
outcomes        the outcome that an error states of its request (A3)
throttling      bounds on what one principal has under way
answer          the answer of an operation, and JSON that is kept
durations       a clock, and the texts of durations
interruption    the effect of Ctrl-C on a command
process         tuning of the garbage collector and the allocator, for a serving process
secret_texts    parsing of texts that hold secrets, without showing them in errors
"""
