"""Managed fields and server-side apply.

    field_set         sets of paths and their elements in the form of FieldsV1; fields that a strategy ignores
    kind_schema       how finely the fields of a kind are owned, for built-in and custom kinds
    typed             from documents to field sets: all fields, applied fields, changed fields
    merging           merge an applied document, remove fields, prune fields that are no longer applied
    managers          the entries of managedFields
    update            what managers own after a create, an update, a patch, or a write of the Scale
    patch             server-side apply: errors of the document, conflicts, and the last-applied annotation of kubectl

A write calls `update.stamp_update` or `patch.apply_patch` before admission, and `update.settle_times` after the last
change. Both decide as structured-merge-diff does in kube-apiserver v1.36.
"""
