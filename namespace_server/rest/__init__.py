"""The catalog over HTTP: the Lance namespace API as stock clients speak it, and our additions to it.

Thin by rule: what a request means and whether it may happen is decided in `namespace_server.directory`. Here bytes
become requests and answers become bytes.

    namespaces, tables, versions, batches, catalog   the endpoints, by object
    unsupported                                      the endpoints of the spec that are not served
    dispatch                                         from method and path to endpoint
    exchange                                         one request, from its ASGI scope to its response
    commits                                          the queue in front of `DirectoryNamespace.commit`
    identity                                         who is asking
    errors                                           failures as status and body
    health                                           the probes
"""
