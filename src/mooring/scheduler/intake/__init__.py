"""Intake: what the watch tells, into the columns and the queue."""
