"""The Lance namespace catalog server.

directory        the catalog of one directory or bucket
background       work beside what a process is asked for: one scheduler of jobs
data             operations on rows of its tables
maintenance      maintenance of tables by policy
workers          processes that do the work on rows, and their pools
credentials      storage options that clients are handed
rest             the catalog over HTTP: routes, errors, middleware
observability    metrics, traces, logs
store            the external manifest store in a database; the only package that imports SQLAlchemy
app              the ASGI application
serving          listening, TLS, bounds of connections, signals, graceful shutdown
cli              the command `lance-namespace`
settings         its settings, from options, environment and file
setting_sources  where settings come from: the environment and a file
setting_types    types of single settings
process          tuning of the garbage collector and the allocator, for a serving process
secret_texts     parsing of texts that hold secrets, without showing them in errors
read_only        whether a server takes changes
answer           the answer of an operation
outcomes         the outcome that an error states of its request
durations        the clock that measures durations, and their texts
"""
