"""Custom kinds: CustomResourceDefinitions and the resources of the kinds that they define.

Input: definitions in the store. Output: entries of the `ResourceTable`.

    definition_controller   status of definitions, deletion, and the table of resources
    naming         accepted names, conditions of definitions
    serving        from a definition to its resources; decoding of bodies
    strategy       the strategy of custom resources; one version of a definition
    scaling        the Scale subresource
    schema         structural schemas, paths of fields, old and new values
    pruning        pruning, defaulting, metadata of embedded resources
    value_rules, formats      validation by the OpenAPI schema
    rules, rule_compiling     validation by CEL rules
    printer_columns           the columns of `kubectl get`, and their JSON paths

1. Conversion between versions changes the apiVersion only. Conversion webhooks are not called.
2. `mooring.apiserver.kinds.custom_resource_definition` validates definitions.
"""
