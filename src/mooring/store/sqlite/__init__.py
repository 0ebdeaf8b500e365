"""The store on disk: all of it in memory, and every change in an SQLite database."""
