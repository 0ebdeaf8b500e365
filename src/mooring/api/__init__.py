"""The meaning of API objects: views of them, and the rules that several components share.

Input: objects as JSON, and values in them (quantities, selectors, taints, requests). Output: typed read-only views
(`views/`), and functions over views and values.

In reading order:

    kinds, schema                       the table of kinds; the fields of every type
    document, views, decode             untyped and typed objects, and decoding
    load, yaml                          objects of files
    quantity, durations, cron_schedule  values in fields
    labels, nodeselector, tolerations   what selectors and tolerations match
    resources, quota                    requests of pods, and usage of quotas
    storage, csi_translation            volumes and claims; volumes of in-tree plugins
    pod_references                      objects that a pod refers to
    patching, cel                       patches; CEL expressions
    well_known                          labels, annotations, finalizers and names of Kubernetes
    errors, field_errors, caches        errors, texts of field errors, a cache

 1. A rule is about one object or about two. No function here needs a cluster.
 2. Nothing here waits, reads a clock, or draws random numbers.
"""
