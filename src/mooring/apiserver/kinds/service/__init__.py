"""Service (v1).

Reading order: `validation`, `ranges`, `allocation`, `strategy`.
"""
