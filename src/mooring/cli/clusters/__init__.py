"""The running clusters of a user: `mooring status`, `mooring down`, and the registry that `mooring up` writes.

command    the options, with the imports of `mooring --help` only
registry   which clusters run
run        shows and stops them
"""
