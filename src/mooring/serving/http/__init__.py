"""An HTTP/1.1 server on asyncio.

    listener       the listening socket, TLS handshakes, and all connections
    connection     one connection: requests in order
    long_running   responses that last: watches, followed logs, live data
    parser         bytes to requests, with llhttp; limits of a connection
    request        one request and its body
    response       complete and streamed responses

Nothing here depends on Kubernetes. See docs/adr/0017-our-own-http-server.md.
"""
