"""The registry: the verbs of the API, carried out on the store.

    create, update, patches        write an object: decode, default, admit, validate, store
    batches                        many similar objects in one call, each written as itself
    spec_cache                     decoded, defaulted and validated specs by their exact bytes
    delete                         delete an object, immediately or with a grace period
    binding, eviction              bind a pod; delete a pod if disruption budgets allow it
    scale, pod_log                 subresources
    reading                        get, list and watch
    object_storage                 documents in the store; reads of admission plugins; statuses that the server writes
    metadata                       metadata that the server sets
    context                        the dependencies of all verbs

1. A write is one conditional put. If another write came first, the request is repeated on the new state, unless it
   names a resourceVersion.
2. A write without a change stores nothing.
3. A dry run takes the same path and ends before the store.
"""
