"""Probes of the process runtime: liveness, readiness and startup.

handlers   runs one probe: exec, httpGet, tcpSocket
grpc       runs a gRPC health check
health     thresholds: what follows from the results
prober     when to probe, for all containers
"""
