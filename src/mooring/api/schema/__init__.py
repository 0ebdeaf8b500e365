"""The schema: which fields every kind has, of which types, and how each is written, merged and numbered.

    *.schema     the facts, one line for each field, one file for each package of types
    model        what a line means
    parse        from lines to the model
    tables       finding the type of a kind; types are read when they are first asked for
    circular     tables that are filled on demand, by several threads

A line of a `.schema` file reads `number name type options`:

    1 metadata? meta.ObjectMeta
    2 ports? []ContainerPort patch=merge mergekey=containerPort list=map keys=containerPort,protocol

`number` is the field's number in protobuf. A `?` means that an empty value is not written (Go's omitempty), a `~` that
a zero one is not (omitzero: the only mark that leaves out a struct). A `*` is a pointer: absent differs from empty.
`required` is what OpenAPI calls so. `valid=` lists the rules of validation (`valid=required,dns-label`), which OpenAPI
does not show; `apiserver.validation.schema_rules` defines them. `<inline>` fields are written as fields of the struct
around them, but are a message of their own in protobuf. An `object` is a struct that carries `apiVersion` and `kind`.

A `type` is a text that may be one of those which follow it, `""` among them where it may be empty; anything if none do.
"""
