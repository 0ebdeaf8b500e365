"""The registry: the verbs of the API, carried out on the store.

   registry      all verbs together, for the handler          shelf      documents in the store
   create        a new object                              lookup     other objects, for admission
   update        an object replaced or patched             refusals   what can go wrong, in Kubernetes' words
   patches       from a patch to the object it means       reading    get, list and watch
   delete        an object ended, at once or in time       metadata   what the server itself writes into metadata
   scale         replicas only        binding   a node for a pod        eviction   a deletion that budgets allow

1. A write is one put under the condition that nobody else wrote since the read; if somebody did, the whole request is
   played again on what he left, unless the request names the state that it is meant for.
2. What would change nothing writes nothing.
3. A dry run walks the same way and stops before the store.
"""
