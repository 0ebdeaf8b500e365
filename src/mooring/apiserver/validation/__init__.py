"""Validation that kinds share: field errors, formats of strings, metadata, selectors, addresses, Go values."""
