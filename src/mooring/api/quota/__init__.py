"""Resource quotas: the usage of an object, and whether the scopes of a quota match it."""
