"""Decoding of request bodies, and content types.

    decode          a request body, by its content type; bodies of patches
    custom_bodies   bodies of custom kinds, where only the metadata has a type
    identity        apiVersion and kind of a body, and the kinds that kube-apiserver knows
    canonical       the canonical form of a document: what Go's decoding and encoding makes of it; empty lists
    scalars         quantities, times, durations, bytes; fields of JSONSchemaProps that are a schema or something else
    examine         errors of types and fields, with Go's messages; strict errors by fieldValidation
    json_text       JSON as Go reads it: repeated keys, numbers as written, invalid UTF-8, nesting; syntax errors
    yaml_text       YAML bodies and responses
    protobuf        protobuf bodies
    media           Content-Type and Accept

The common case is fast: msgspec decodes, `canonical` walks the object once, and nothing else is called. The other
modules run only for a body with an unknown field, a wrong type, or bytes that differ from what we would write.
"""
