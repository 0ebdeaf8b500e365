"""`mooring simulate`: days of a cluster in seconds.

command     the options
run         one sweep over policies and seeds, and its assertions
replay      the replay of a recording
text        the table, JSON, CSV and SVG
"""
