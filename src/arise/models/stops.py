"""Reasons to stop a run cleanly: typed, each with its exit code. A bad reply is never one of them."""


class RunStop(Exception):  # noqa: N818 - a stop is an outcome, not an error
    """Stops the run at the end of what is in flight; the message says what to do."""

    exit_code = 1


class BudgetExhausted(RunStop):
    """The calls of the run have cost what they may cost."""

    exit_code = 4


class StoreUnusable(RunStop):
    """The file with recorded replies cannot be read."""

    exit_code = 5


class JudgeChanged(RunStop):
    """Another model answered within a window; verdicts of two judges do not mix."""

    exit_code = 7


class ModelUnusable(RunStop):
    """The endpoint is down and the policy is to stop, or a pause has lasted too long."""

    exit_code = 7
