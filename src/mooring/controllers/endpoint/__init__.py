"""The controllers of EndpointSlices and Endpoints.

Read `service_pods` (pods as endpoints of services), then `slices`, `endpoints` and `mirroring`.
"""
