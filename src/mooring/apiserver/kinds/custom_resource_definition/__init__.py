"""CustomResourceDefinition (apiextensions.k8s.io/v1).

Reading order: `structural`, `rules`, `schema`, `conversion`, `status`,
`definition`, `strategy`.
"""
