"""The command line: the door to the street.

Comes in   what people type, and the files that they name
Goes out   screens, JSON, YAML, exit codes; complaints that name the file, the line and the field

`manifests` reads files (`chunks` cuts large ones, `kinds` knows what may be in them, `checks` looks at every value);
`explain/` is the command that shows scheduling decisions.

 1. Nothing here decides: the scheduler does, and its decision is data.
 2. `mooring --help` imports no numpy, and nothing draws (rich) unless there is a terminal to draw on.
 3. Whatever is wrong with the input ends with exit code 2 and one line for each problem, never with a traceback.
"""
