"""The believed cluster as a table: one row for each node, one array for each fact."""
