"""CEL: compile and evaluate the expressions of device selectors and of CRD validation rules.

The language, its functions, costs and error texts are those of kube-apiserver and kube-scheduler v1.36.

Modules in reading order:

    parser, macros, syntax      from text to a tree
    types, values               what the checker and the evaluation work with
    functions, environment      the declared functions, variables and types
    operators, conversions,     the functions themselves, one module for each library
    strings, lists, kubernetes
    patterns                    regular expressions, on RE2
    checker                     the types of a tree, and mistakes that types do not show
    compiler, runtime           from a tree to one Python function, and the closures it consists of
    costs                       the cost of an evaluation, and its limit
    estimates, call_estimates   the maximum cost of an expression, before it is stored
    errors                      exceptions and error reports
    selector                    device selectors: the interface of this package for the scheduler

 1. Error texts equal those of Kubernetes, except syntax errors (docs/parity-cluster.md).
 2. An evaluation has a limit of cost, which also bounds its memory.
 3. Regular expressions take linear time.
"""

from mooring.api.cel.costs import COST_MAX
from mooring.api.cel.errors import DeviceSelectorError, SelectorEvaluationError
from mooring.api.cel.selector import CelDevice, CompiledSelector, compile_device_selector, worst_selector_cost

__all__ = [
    "COST_MAX",
    "CelDevice",
    "CompiledSelector",
    "DeviceSelectorError",
    "SelectorEvaluationError",
    "compile_device_selector",
    "worst_selector_cost",
]
