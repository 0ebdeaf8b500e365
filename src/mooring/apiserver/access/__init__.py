"""Access: who may come in, and what they may do here.

    users, request                  who asks, and for what
    certificates, keyring           our own authority, and what it has signed
    authentication, impersonation   from a certificate or a token to a user; and to whom that user wants to be
    authorization                   masters, then nodes, then roles: the first who says yes
    rules, rbac, node_rules         what a rule covers, who has which, and what every node may do
    escalation, reviews             nobody gives away what is not theirs; may I, may they, who am I?
    default_roles                   what everybody may do before anybody has said anything

Comes in   headers, certificates and documents
Goes out   a `User`, a `Decision`, a document; or an error of `mooring.client.errors` with Kubernetes' words

1. Nothing here speaks HTTP or reads the store. Files are read and written by `keyring` and `kubeconfig_file` only.
2. Whoever cannot be told apart from a stranger is a stranger, and a wrong token is worse than none.
"""
