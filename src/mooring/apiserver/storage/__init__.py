"""Storage: objects in the store, as the API server stores, serves and watches them.

In reading order:

    stored_form      the stored bytes of an object, and the bytes for clients, with the resourceVersion; kinds that are
                     stored in the form of another kind: both event APIs, custom versions
    selection        label and field selectors on stored objects
    storage          get, list and watch; continue tokens of paged lists; watch events and bookmarks
    foreign_values   values that kube-apiserver wrote to etcd
"""
