"""The dialects of requests: other clients' ways to say what the published namespace API says. Nothing below knows them.

    databases       the database that a request is about, as a scope of its ids
    lancedb         the dialect of lancedb's remote clients (`db://`): which requests are in it, its translations
    translation     from a request in a dialect to the published one, and back
    tables          translations of operations on tables, their columns, tags, versions, branches and indices
    queries         translations of queries and their plans
    listing         lists of the tables of a database
    unserved        what there is none of here
    time_limits     the time that a client gives a request
    statuses        the HTTP statuses that lancedb's clients understand

`routing.Route.dialects` says which dialects a route has. Its request is translated to that of the published API, its
handler answers that, and the answer is translated back. Statuses of errors are chosen by the error handler.
"""
