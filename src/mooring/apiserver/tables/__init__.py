"""Tables of `kubectl get`: columns and cells that kinds share, and the columns of custom kinds."""
