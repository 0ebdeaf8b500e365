"""Validation that kinds share.

In reading order:

    fields         field errors, and values as Go prints them
    names          formats of strings: DNS names, qualified names, ports, paths
    metadata       metadata of an object
    values         values as Go's types compare and print them
    schema_rules   the rules of fields in `valid=` of the schema
    selectors      label selectors and conditions
    addresses      IP addresses and CIDRs
"""
