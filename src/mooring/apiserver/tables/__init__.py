"""Tables: what `kubectl get` prints. Columns and cells of every kind."""
