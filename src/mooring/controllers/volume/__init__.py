"""The controllers of volumes and claims.

Read `binder`, then `plan`, `writer` and `provisioning`; then `protection` and `ephemeral`.
"""
