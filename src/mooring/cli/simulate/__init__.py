"""`mooring simulate`: days of a cluster in seconds.

command     the options
run         one sweep over policies and seeds, and its assertions
replay      the replay of a recording
text        tables for the terminal, JSON and CSV
plots       SVG plots
report      the folder of --output: tables, plots and a report in HTML
"""
