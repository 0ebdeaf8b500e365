"""Apply patches to objects.

    json_patch   a list of operations (RFC 6902), and an object that is merged into another (RFC 7386)
    strategic    the merge patch of Kubernetes, which merges lists by keys

Input: dictionaries: an object and a patch. Output: a new dictionary, or a `PatchError` with the text and the code of
kube-apiserver v1.36.

1. Input is never changed. Unchanged parts are shared with the result, not copied.
2. The result is JSON. Whether it is a valid object is checked elsewhere.
"""
