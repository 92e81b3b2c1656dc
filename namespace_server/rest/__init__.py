"""The catalog over HTTP: the Lance namespace API as stock clients speak it, and our additions to it.

What a request means and whether it may happen is decided in `namespace_server.directory`. Here bytes become requests
and answers become bytes.

    routers         the routes: one table of the operations, health, documentation, operations that are not served
    dialects        other clients' ways to say the same requests, translated at the router: lancedb's `db://`
    handlers        what routes do with a request, one class for each kind of operation
    blobs           the handlers of values of columns of blobs, and their answers
    multipart       the handlers of rows that are uploaded in parts
    following       the handler of events: an answer after a wait, or a stream
    auditing        handlers for auditors: the history with origins, refused attempts
    routing         how a route is declared, FastAPI, and the lookup in front of it
    exchange        one request and what its parts say
    middleware      request ids, the error handler, hosts and origins
    request         the parts of a request
        headers         catalog versions, idempotency keys, query parameters
        body            reads bodies within bounds and decodes them
        rows            rows in the body of a request
        decoding        from the parts of a request to the request of an operation
        limits          the bounds that every request is held to
    service         what all routes share: the catalog, threads, the newest snapshot
    data_service    operations on rows, admitted within bounds
    under_way       work for clients that may go away, and for those that ask again
    maintenance_runs  maintenance for clients: threads, and the tasks that make their changes
    blob_pieces     a long value, read as its client takes it
    event_streams   what waits for catalog versions, and wakes when there are new ones
    forwarding      hands changes to the server that commits
    forwarding_result  the result of forwarding a change
    audit           what a refused request is in the log of refused attempts
    commit_queue    groups of changes and the threads that commit them
    fair_queue      which of the waiting changes a group takes, by their principals
    models          pydantic models: our additions to the published ones, query parameters
    responses       headers and bodies of successes
    errors          status and body of every failure
    identity        who a request is from. API keys: `key_file` reads and writes them, `wrong_keys` bounds guesses
    principals      identities, the issuers whose tokens say them, refusals
    access_tokens   judges bearer tokens of OpenID Connect
    issuer_keys     the keys of an issuer: found, kept, read again
    client_address  the address of the client of a request
    origins         where a request came from, told from one server to another
    own_address     the address of this machine for others
    header_names    names of our headers

A read of the catalog is also a line in the `READS` of `directory.reading.descriptions`, a change one in
`directory.model.batch_requests`; which fields their requests may have is generated from the OpenAPI document.
"""
