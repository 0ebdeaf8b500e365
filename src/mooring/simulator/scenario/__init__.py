"""The scenario file: what a simulation does. docs/simulate.md documents the fields.

In reading order:

    fields    the fields, as plain data; durations, rates and seeds as they are written
    reading   from a file to a `Scenario`: parameters, names of files, rules, errors with their line
"""
