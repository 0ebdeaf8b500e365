"""Kinds that users define: CustomResourceDefinitions, and the objects of the kinds that they define.

Comes in   definitions, as they come and go in the store
Goes out   resources like any other, in the `ResourceTable`

    kinds        keeps the table of resources up to date   establishing  accepts names, cleans up after a deletion
    serving      from a definition to its resources        naming, conditions   what the status of a definition says
    version      all that a definition says of a version   deprecation   the warning of an old one
    strategy     how objects of such a kind behave         finalizer_warnings   odd finalizers
    bodies       from bytes to documents                   scaling       the Scale of such an object
    schema       a structural schema, read once            field_paths   paths to fields of it
    pruning      fields that a schema does not have        defaulting    what nobody said
    value_rules, number_rules, formats    is a value what its schema says?
    list_types   sets and maps that are lists              metadata      of resources inside of resources
    rules        what CEL rules say of an object           correlation   which old value a new one stands for
    rule_types, rule_values, rule_compiling    what CEL sees of an object, and its rules as programs

 1. Conversion between versions changes the apiVersion and nothing else. A definition may name a webhook; nobody calls
    it.
 2. `mooring.apiserver.kinds.custom_resource_definition` validates definitions.
"""
