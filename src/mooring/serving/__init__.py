"""Serving: what a component shows of itself on its secure port.

Comes in   a component's health, numbers and flags; requests of kubelets, Prometheus and people
Goes out   answers, to those who may see them

    server            listening, and the way of a request: who is it, may they, what is there
    authentication    who is it? a certificate, a proxy's word, a token that the API server knows
    authorities       whose certificates are trusted, as the cluster says
    authorization     may they? paths that everybody may see, else the API server's word
    tls, self_signed  certificates
    health            /healthz, /livez, /readyz
    pages             /flagz, /statusz and the texts around them
    profiling         /debug/pprof, on `pprof`, which writes the format

Nothing here knows what a scheduler is: any component of a control plane has these doors.
"""
