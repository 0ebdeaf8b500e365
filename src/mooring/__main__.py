"""`python -m mooring`: the same as `mooring`."""

from mooring.cli.main import main

main(prog_name="mooring")
