"""The front desk: an API server that kubectl and the Go components take for Kubernetes.

A request walks through these rooms:

    http         the door: bytes in, bytes out            access       who is it, and may he
    wire         from bytes to documents                  resources    which kind is meant, and what it can do
    registry     the verbs, one file each                 apply        who manages which field
    admission    what the cluster adds and forbids        strategies   what is special about a kind
    validation   what is wrong with an object             custom       kinds that users define
    tables       what `kubectl get` prints                openapi      what kubectl knows about kinds

 1. Objects are whole JSON documents here (`mooring.api.document`), and no field is lost that the server does not know.
 2. A strategy decides and never waits; the registry acts. Admission may look things up.
 3. Every refusal is a `StatusError` of `mooring.client.errors`, with the words of kube-apiserver v1.36.
"""
