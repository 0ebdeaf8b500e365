"""The garbage collector: `graph` tracks owners, `controller` deletes and orphans objects."""
