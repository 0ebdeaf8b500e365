"""The API server: serves the Kubernetes API to kubectl, client-go and the components of this project.

In the order in which a request passes them:

    http         connections, routing, responses             access       authentication and authorization
    wire         decoding of request bodies                  resources    the served kinds
    registry     the verbs, one module each                  admission    admission plugins
    kinds        defaults, validation, strategy, columns     custom       kinds of CustomResourceDefinitions
    apply        managed fields and server-side apply        storage      reads and watches of the store
    validation   field errors and shared rules               tables       columns and cells of `kubectl get`
    discovery    groups, versions and resources              openapi      OpenAPI v2 and v3
    errors       errors with the texts of kube-apiserver

1. Objects are whole JSON documents (`mooring.api.document`). Fields that the server does not know are not lost.
2. A strategy decides and never awaits. The registry acts. Admission may look objects up.
3. Every error is a `StatusError` of `mooring.client.errors` with the message of kube-apiserver v1.36.
"""
