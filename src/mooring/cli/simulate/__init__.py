"""`mooring simulate`: days of a cluster in seconds.

command     the options
run         one sweep over policies and seeds, and its assertions
text        the table, JSON, CSV and SVG
"""
