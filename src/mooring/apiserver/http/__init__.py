"""The HTTP interface of the API server.

server               listen, start and stop
handler              one request: 401, 403, 429, 404, response
request              path, method, parameters, headers and body; limits
objects              verbs on objects and subresources
virtual              reviews, bindings and plans, which are not stored
watches              one watch
broadcasts           watches with the same query share events
rendering            replies, errors, Warning headers; JSON, YAML, Table, metadata; Accept
non_resource_paths   health, version, discovery, OpenAPI
metrics              request metrics
"""
