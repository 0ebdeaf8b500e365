"""Authentication, authorization and certificates.

    certificates, keyring           the certificate authority, its files, and the kubeconfig file
    authentication, impersonation   from a certificate or a token to a user
    service_account_tokens          tokens of service accounts, and TokenRequests
    authorization                   attributes of a request, RBAC rules, the authorizers and the 403 response
    rbac, node_authorizer           role bindings, and the node authorizer
    escalation, admin_access        admission checks that need an authorizer
    reviews                         SubjectAccessReview and its variants, TokenReview
    default_roles                   the default roles and bindings, from `default.roles`

Input: headers, certificates and documents. Output: a `serving.users.User`, a `Decision`, a document; or an error of
`mooring.client.errors` with kube-apiserver's message.

1. Nothing here uses HTTP or reads the store. Only `keyring` reads and writes files.
2. An invalid token is an error, also where anonymous requests are allowed.
"""
