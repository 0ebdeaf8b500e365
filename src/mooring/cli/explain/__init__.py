"""`mooring explain`: where pending pods would go, and why.

In reading order:

  command         the click command and its options
  run             one run, from the options to the report: asks the engine about each pod
  coverage        which kinds the input lacks, and what is not judged without them
  report          the answers as data, JSON and YAML
  text            the answers for people
"""
