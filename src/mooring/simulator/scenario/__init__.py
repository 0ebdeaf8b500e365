"""The scenario file: what a simulation does. docs/simulate.md documents the fields.

In reading order:

    values       durations, rates and seeds as they are written
    fields       the fields, as plain data
    validation   the rules that fields have among each other
    reading      from a file to a `Scenario`: parameters, names of files, errors with their line
"""
