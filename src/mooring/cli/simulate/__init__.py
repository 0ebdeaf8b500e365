"""`mooring simulate`: days of a cluster in seconds.

command     the options
run         one sweep over policies and seeds: its assertions, and its results as tables, JSON and CSV
replay      the replay of a recording
plots       SVG plots
report      the folder of --output: tables, plots and a report in HTML
"""
