"""What can be wrong with an object, as one tree of exceptions.

   ObjectError                 an object breaks a rule of the API
   ├── DecodeError             it cannot be read: not JSON, or a field of the wrong type
   │   └── UnknownKindError    nobody here knows its kind
   ├── QuantityError           "12 apples" is not a quantity
   ├── LabelSelectorError      a label selector that cannot be compiled
   └── NodeSelectorError       a node selector that cannot be compiled

1. Trying again never helps: the object has to be changed. So none of these is ever retried.
2. They are `ValueError`s, because to whoever passed the object in, that is what happened.
3. Texts that Kubernetes shows to users are reproduced to the letter, so that a search engine knows them.
"""

from __future__ import annotations


class ObjectError(ValueError):
    """An object, or a value inside of one, breaks a rule of the API."""


class DecodeError(ObjectError):
    """An object cannot be read. Says which object, which field, what was wanted there and what was found."""

    def __init__(self, kind: str, name: str, path: str, problem: str) -> None:
        self.kind = kind
        self.name = name
        self.path = path
        self.problem = problem
        subject = f'{kind or "object"} "{name}"' if name else kind or "object"
        super().__init__(": ".join(part for part in (subject, path, problem) if part))


class UnknownKindError(DecodeError):
    """The object's kind is not in the table of kinds, in this version or in any."""

    def __init__(self, api_version: str, kind: str, known_versions: tuple[str, ...] = ()) -> None:
        text = f'no kind "{kind}" is registered for version "{api_version}"'
        if known_versions:
            quoted_versions = (f'"{version}"' for version in known_versions)
            text += f"; it is known in {' and '.join(quoted_versions)}"
        super().__init__(kind, "", "", text)
        self.api_version = api_version
        self.known_versions = known_versions
        self.args = (text,)


class QuantityError(ObjectError):
    """A text is not a quantity."""


class LabelSelectorError(ObjectError):
    """A label selector cannot be compiled. Several errors are one text."""


class NodeSelectorError(ObjectError):
    """A node selector cannot be compiled. Several errors are one text."""
