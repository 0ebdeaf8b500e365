"""CEL: the expressions that say which devices suit, exactly as kube-scheduler v1.36 reads them.

Comes in   expressions, and devices
Goes out   `compile_device_selector`, `CelDevice`, and what they raise; `worst_selector_cost` of what is to be stored

The way through the room: `lexer` and `parser` (with `macros`) make a tree (`syntax`), `checker` and `validators` look
for mistakes with the types (`types`) and functions (`functions`, `environment`, the libraries) that there are, and
`compiler` (with `logic`, `loops`, `access` and `building`) turns it into one Python function over a frame. `selector`
is the door.

 1. Error texts are Kubernetes' to the letter, those of the parser included (`syntax_faults`).
 2. What an expression can cost at most is estimated (`estimates`, `call_estimates`, with `spans`) before it is stored.
 3. No expression can run for long: loops and texts that grow are metered (`costs`), and patterns never backtrack
    (`regex`).
"""

from mooring.api.cel.costs import COST_MAX
from mooring.api.cel.errors import DeviceSelectorError, SelectorEvaluationError
from mooring.api.cel.selector import CelDevice, DeviceSelector, compile_device_selector, worst_selector_cost

__all__ = [
    "COST_MAX",
    "CelDevice",
    "DeviceSelector",
    "DeviceSelectorError",
    "SelectorEvaluationError",
    "compile_device_selector",
    "worst_selector_cost",
]
