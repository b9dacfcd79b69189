"""Why a model from elsewhere is not opened: one error, a code for each cause, a sentence for the reader."""

from typing import Literal

Refusal = Literal[
    "off",  # no model is allowed here
    "name",  # not a name that a model could have
    "listed",  # not one of those allowed
    "packages",  # transformers is not installed, or something that this tokenizer needs
    "network",  # neither here already nor to be had
    "missing",  # the folder, or a file that a model needs, is not there
    "outside",  # a file lies elsewhere than in the folder
    "pickle",  # weights in a format that can hold code
    "code",  # wants to run code of its own
    "large",  # more than the limit
    "architecture",  # a sort of model that cannot be shown
    "attention",  # its attention cannot be seen
    "broken",  # what its files say does not hold
]


class RefusedError(ValueError):
    """A model that is not opened, and why: `code` for the program, the message for the reader."""

    def __init__(self, code: Refusal, sentence: str) -> None:
        super().__init__(sentence)
        self.code: Refusal = code

    def __reduce__(self) -> tuple[object, ...]:
        return type(self), (self.code, str(self))
