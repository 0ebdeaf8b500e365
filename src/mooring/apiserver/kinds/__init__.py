"""Built-in kinds: defaults, validation, table columns and strategy of each, in one module per kind."""
