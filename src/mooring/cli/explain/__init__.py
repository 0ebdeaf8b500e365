"""`mooring explain`: where pending pods would go, and why.

In reading order:

  command         the click command and its options
  run             one run, from the options to the report
  coverage        which kinds the input lacks, and what is not judged without them
  decide          asks the engine about each pod
  report          the answers as data
  text            ... for people
  data            ... as JSON and YAML
"""
