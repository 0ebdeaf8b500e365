"""OpenAPI v2 and v3: schemas of all kinds, and the paths at which they are served.

documents    cached documents: paths, schemas, custom kinds
operations   paths and operations
schemas      schemas of built-in types; schemas without a struct; the differences of v2 and v3
"""
