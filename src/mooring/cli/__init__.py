"""The command line: the door to the street.

Comes in   what people type, and the files that they name
Goes out   screens, JSON, YAML, exit codes; complaints that name the file, the line and the field

The way of `mooring explain`: `manifests` reads the files (`chunks` cuts large ones, `kinds` knows what may be in them,
`checks` looks at every value), `completion` adds what an API server would have added, `explaining` asks the engine and
lays its answers out as an `explanation`, and `explain_text` or `explain_data` print that.

 1. Nothing here decides: the scheduler does, and its decision is data.
 2. `mooring --help` imports no numpy, and nothing draws (rich) unless there is a terminal to draw on.
 3. Whatever is wrong with the input ends with exit code 2 and one line for each problem, never with a traceback.
"""
