"""The HTTP interface of the API server.

server         listen, start and stop                      address       path and method of a request
handler        one request: 401, 403, 429, 404, response    request       headers and body; limits
objects        verbs on objects and subresources            query         parameters
watches        one watch                                    rendering     JSON, YAML, Table, metadata; Accept
broadcasts     watches with the same query share events     reply         responses, errors, Warning headers
virtual        reviews and bindings                         plain_paths   health, version, discovery, OpenAPI
metrics        counters
"""
