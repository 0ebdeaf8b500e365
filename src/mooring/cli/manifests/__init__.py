"""Manifests and dumps of clusters: files, folders and standard input as checked objects.

read          reads sources into views, or into plain documents
yaml_chunks   splits large YAML files, and finds the line of a field
kinds         kinds that `mooring explain` skips, and kinds that it expands
checks        values that the typed decoder accepts and that are invalid
"""
