"""The schema: the fields of every kind, their types, and how each is encoded and merged.

    *.schema     the facts: one line for each field, one file for each package of types
    types        types and fields; the type of a kind; packages are parsed when they are first needed

A line of a `.schema` file is `number name type options`:

    1 metadata? meta.ObjectMeta
    2 ports? []ContainerPort patch=merge mergekey=containerPort list=map keys=containerPort,protocol

`number` is the field number in protobuf. `?` means that an empty value is not written (Go's omitempty), `~` that a zero
value is not (omitzero: the only mark that leaves out a struct). `*` is a pointer: absent differs from empty. `required`
is that of OpenAPI. `valid=` lists validation rules (`valid=required,dns-label`), which are not part of OpenAPI;
`apiserver.validation.schema_rules` defines them. `<inline>` fields are fields of the surrounding struct in JSON, and a
message of their own in protobuf. An `object` is a struct with `apiVersion` and `kind`.

A `type` is a string type, followed by its allowed values, with `""` among them if it may be empty. Without values, any
string is allowed.
"""
