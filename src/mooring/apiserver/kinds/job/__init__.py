"""Job (batch/v1).

Reading order: `policies`, `status`, `spec`, `strategy`.
"""
