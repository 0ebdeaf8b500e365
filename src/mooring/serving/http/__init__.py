"""HTTP/1.1, as a server speaks it: bytes in, requests out; answers in, bytes out.

Comes in   a handler (a request -> its answer), an address to listen on, certificates
Goes out   a listener that answers inside of an `async with`

    limits       what a connection may ask of us before anybody knows who it is
    reader       bytes -> requests, on llhttp's parser; knows no socket
    request      one request: what it says, and its body when somebody wants it
    body         what follows a head: taken in as far as somebody wants it
    response     an answer that is whole, and the head of any answer
    stream       an answer that goes on
    connection   one client: its requests, one after the other
    acceptor     new connections: the TLS handshake, and its limits
    listener     all of them: listening, patience, ending in order

Nothing here knows Kubernetes. See docs/adr/0017-our-own-http-server.md.
"""
