"""The secure port of a component: health, metrics, flags and profiles over TLS.

    server           listens; authenticates and authorizes a request and calls the page of its path
    pages            requests and responses of pages, and error responses
    endpoints        /healthz, /livez, /readyz, /flagz, /statusz, /configz
    loop_metrics     how long the event loop was blocked
    profiling        /debug/pprof
    authentication   client certificates, request headers of a proxy, bearer tokens; trusted authorities
    users            users and groups, also of the API server
    authorization    always-allowed paths, otherwise a SubjectAccessReview
    tls              the serving certificate and the TLS context
    console          the web console: logins, sessions, files, live data
    http/            the HTTP/1.1 server

Nothing here depends on a component: scheduler, controllers and kubelets use it.
"""
