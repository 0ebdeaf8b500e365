"""The wire: from bytes to documents.

    decode               a request's body, by its content type; what it claims to be, and whether that will do
    custom_bodies        the same for custom kinds, of which only the metadata has a type
    patch_bodies         bodies of patches
    identity             what a body says it is
    registered           which kinds kube-apiserver knows, and what it says of others
    canonical            what Go's decoding and encoding makes of an object: the form that everybody behind us has
    scalars              quantities, times, bytes: single values with a form of their own
    json_schema_values   what may be a schema or something else, in definitions of custom kinds
    examine              what is wrong with an object's types and fields, in Go's words
    unstructured         the same for the result of a strategic merge patch, which Go decodes another way
    go_names             what Go calls the types of fields
    strict               unknown and repeated fields: refused, told, or ignored
    json_text            JSON as Go reads it: repeated keys, numbers as written, bytes that are no text
    json_syntax          where JSON departs from its grammar, in Go's words
    yaml_text            YAML bodies, as JSON
    protobuf             bodies as kubectl and Go clients send them
    media                what a body is written in, and what the client wants to get

The common case is quick: msgspec decodes, `canonical` walks the object once, and nothing else is called. Only when
something is odd (a field too many, a wrong type, bytes that are not what we would have written) the slow rooms look at
it again, to say what.
"""
