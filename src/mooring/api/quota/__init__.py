"""Quotas: what an object uses of one, and which objects a quota with scopes means."""
