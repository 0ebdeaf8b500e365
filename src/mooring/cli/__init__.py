"""The command line.

   main          the command `mooring`, exit codes, shell completion
   up/           `mooring up`: a cluster in one command
   scheduler/    `mooring scheduler`
   standalone/   `mooring controllers`, `mooring nodes`
   explain/      `mooring explain`
   manifests/    reads manifests and dumps
   flags         flag values in the format of Kubernetes' components
   terminal      text layout and progress bars
   errors        errors in the input

1. `mooring --help` imports click and little else; rich is imported only for a progress bar on a terminal.
2. Invalid input ends with exit code 2 and one line for each problem, never with a traceback.
"""
