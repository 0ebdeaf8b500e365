"""The HTTP interface of the API server.

server         listen, start and stop                       request       path, method, headers and body; limits
handler        one request: 401, 403, 429, 404, response    query         parameters
objects        verbs on objects and subresources            metrics       counters
watches        one watch                                    rendering     JSON, YAML, Table, metadata; Accept
broadcasts     watches with the same query share events     reply         responses, errors, Warning headers
virtual        reviews, bindings and plans, not stored      non_resource_paths   health, version, discovery, OpenAPI
"""
