"""CustomResourceDefinition (apiextensions.k8s.io/v1).

Reading order: `structural`, `rules`, `schema`, `conversion`, `definition`, `strategy`.
"""
