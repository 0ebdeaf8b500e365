"""Defaults: what an object means where its author said nothing. Functions that fill a document in place."""
