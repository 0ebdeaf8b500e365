"""The built-in plugins, one module or package each. `scheduler.catalogue` lists them."""
