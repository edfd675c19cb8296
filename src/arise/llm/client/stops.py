"""Errors that stop a run cleanly, each with exit code and remedy. A bad reply never stops a run."""

from arise.errors import AriseError, Exit


class RunStop(AriseError):  # noqa: N818 - a stop is an outcome, not an error
    """Stop the run after requests in flight; recorded replies are not paid for again."""


class BudgetExhausted(RunStop):
    """The run's calls have used up the budget."""

    def __init__(self, what: str) -> None:
        super().__init__(
            "budget", Exit.BUDGET, what, "the run stops, replies are kept", "arise resume RUN --add-budget DOLLARS"
        )


class PriceUnknown(RunStop):
    """A dollar cap is set, but the price of a call is unknown."""

    def __init__(self, model: str, base_url: str) -> None:
        super().__init__(
            "budget",
            Exit.CONFIG,
            f"a budget is set (max_usd) but no price is known for {model!r} at {base_url}",
            "nothing was sent",
            "in the section of the endpoint (judge.endpoint, reflector.endpoint) or in budget.prices, say "
            "price = {input = 0.3, output = 1.2} in dollars per million tokens, or price = 0 for a free endpoint; "
            "on the command line --price 0.3,1.2 or --price 0",
        )


class StoreUnusable(RunStop):
    """The file with recorded replies cannot be read."""

    def __init__(self, what: str) -> None:
        remedy = "restore the file, or move it away to ask (and pay) again"
        super().__init__("storage", Exit.STORAGE, what, "recorded replies cannot be used", remedy)


class JudgeChanged(RunStop):
    """Another model answered within a window; verdicts of two judges must not mix."""

    def __init__(self, what: str, model: str) -> None:
        remedy = f"go back to the first model, or allow the new one: arise resume RUN --allow-judge-change {model}"
        super().__init__("judge", Exit.JUDGE, what, "verdicts of two judges would mix in one window", remedy)


class AnswersUnusable(RunStop):
    """Too few of the verdicts requested in a window of the pool are usable."""

    def __init__(self, what: str) -> None:
        remedy = (
            "fix the judge and resume, or set judge.when_unusable = 'task_only' in the run's config.toml and resume "
            "with --change judge.when_unusable"
        )
        super().__init__("judge", Exit.JUDGE, what, "rubrics would decide on few or biased verdicts", remedy)


class ModelUnusable(RunStop):
    """The endpoint is down and the policy is to stop, or a pause has lasted too long."""

    def __init__(self, what: str) -> None:
        remedy = "check the endpoint and resume, or set when_down = 'task_only'"
        super().__init__("judge", Exit.JUDGE, what, "the judge can give no verdicts", remedy)
