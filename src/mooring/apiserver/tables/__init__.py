"""Tables of `kubectl get`.

columns   columns of a kind, and texts of cells that kinds share
custom    the columns of custom kinds, and their JSON paths
"""
