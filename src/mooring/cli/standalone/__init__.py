"""`mooring controllers` and `mooring nodes`: one component of Mooring against any API server.

command   the click commands and their options
run       runs the component until Ctrl-C
"""
