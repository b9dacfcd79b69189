"""The learning rate over a run."""


def rate(step: int, steps: int, peak: float, warmup: int, cooldown: float) -> float:
    """The learning rate of step 1..steps.

    The paper's eq. 3, written by its peak: linear up to `peak` at `warmup`, then falling with the
    inverse square root of the step. Over the last `cooldown` share of the run it is also drawn
    linearly to 0, which the paper's averaging of late checkpoints does in another way; until there
    a run can be prolonged without having known its length.
    """
    paper = peak * min(step / warmup, (warmup / step) ** 0.5)
    left = (steps - step + 1) / max(1.0, cooldown * steps)
    return paper * min(1.0, left)
