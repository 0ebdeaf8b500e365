"""Read-only views of API objects.

Input: JSON bytes or dictionaries, decoded by `mooring.api.decode`. Output: frozen values with the field names of
Kubernetes in snake case.

`meta` defines what a view is, and parts of other views; then one module for each group of kinds: `pod`, `node`,
`storage`, `workloads`, `devices` and others.
"""
