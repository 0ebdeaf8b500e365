"""Read views: what the parts of the system see of the API's objects.

Comes in   JSON bytes or plain dictionaries, by way of `mooring.api.decode`
Goes out   frozen values with Kubernetes' own field names, in snake case

`base` says what a view is; then `meta`, `selectors` and `volumes`, which others build on; then a file for each family
of kinds: `pod`, `node`, `storage`, `workloads`, `devices`.
"""
