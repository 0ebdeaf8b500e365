"""The store: a numbered history of keys and values, behind one promise."""
