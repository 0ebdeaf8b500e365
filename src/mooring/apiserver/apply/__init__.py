"""Managed fields and server-side apply.

    path_elements     one element of a path in FieldsV1
    field_set         sets of paths in the form of FieldsV1; fields that a strategy ignores
    shape             how finely the fields of a kind are owned; `struct_shape` and `custom_shape` build shapes
    typed             from documents to field sets: all fields, applied fields, changed fields
    checking          errors of an applied document
    merging           merge an applied document, remove fields, prune fields that are no longer applied
    managers          the entries of managedFields
    ownership         what managers own after a change
    update            managedFields after a create, an update, a patch, or a write of the Scale
    patch             server-side apply: conflicts, and the last-applied annotation of kubectl

A write calls `update.stamp_update` or `patch.apply_patch` before admission, and `update.settle_times` after the last
change. Both decide as structured-merge-diff does in kube-apiserver v1.36.
"""
