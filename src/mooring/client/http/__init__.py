"""The HTTP client: for any Kubernetes API server, and for the other servers that components call.

In reading order:

    connection   where an API server is and how to authenticate; credentials from files
    client       the client interface over HTTP: paths, lists, writes
    requests     rate limit, retries, renewal of credentials, request metrics
    list_watch   items of a List, and watch events
    errors       from a Status, or from any other answer, to a `StatusError`
    transport    the connection pool and the requests of one API server
    http_connection   one HTTP/1.1 connection, and the parser of answers
    dial         new connections: name lookup, proxies, TLS
    proxy        proxies from the environment; SOCKS5
    exchange     requests to extenders, containers and kubelets

Why not a library: docs/adr/0015-our-own-http-client.md.
"""
