"""Probes of the process runtime: liveness, readiness and startup.

handlers   runs one probe: exec, httpGet, tcpSocket, grpc
prober     when to probe, for all containers, and what follows from the results
"""
