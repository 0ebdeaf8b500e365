"""The command line.

   main          the command `mooring`, exit codes, shell completion
   options       options that several commands share
   flags         flag values in the format of Kubernetes' components
   up/           `mooring up`: a cluster in one command
   clusters/     `mooring status`, `mooring down`
   scheduler/    `mooring scheduler`
   standalone/   `mooring controllers`, `mooring nodes`
   manifests/    reads manifests and dumps
   cluster_source/   the cluster of a dump or an API server, for the commands below
   explain/, plan/, compare/, why/, simulate/, parity/, console/: a command each
   terminal      text layout and progress bars
   errors        errors in the input

1. `mooring --help` imports click and little else; rich is imported only for a progress bar on a terminal.
2. Invalid input ends with exit code 2 and one line for each problem, never with a traceback.
"""
