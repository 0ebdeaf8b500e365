"""Who manages which field: managedFields, and server-side apply on top of it.

    path_elements     one step of a path, as FieldsV1 writes it
    field_set         sets of paths, in the form of FieldsV1 itself
    fields_v1         reading what a client wrote there
    shape             how finely the fields of a kind are owned; `struct_shape` and `custom_shape` make shapes
    typed             from documents to field sets: all fields, the fields of an applied document, what changed
    checking          what is wrong with an applied document
    merging           one document laid over another; `removing` takes fields out again
    filters           which fields a way of writing ignores
    managers          the entries of managedFields
    ownership         what managers still own after a change
    update            after a create, an update or a patch
    patch             server-side apply; with `pruning`, `conflicts` and `last_applied`
    scale             entries of an object, and of its Scale

A write through the API calls `update.stamp_update` or `patch.apply_patch` before admission, and `update.settle_times`
when nothing changes any more. Both decide as structured-merge-diff does in kube-apiserver v1.36.
"""
