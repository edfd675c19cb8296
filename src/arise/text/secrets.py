"""Find and redact secrets in text, by pattern or as values of secret-looking environment variables."""

import os
import re
from collections.abc import Mapping
from functools import cache

REDACTED = "[redacted]"

_FORMS = [
    r"sk-(?:ant-|proj-|or-v1-)?[A-Za-z0-9_\-]{20,}",
    r"(?:AKIA|ASIA)[0-9A-Z]{16}",
    r"gh[pousr]_[A-Za-z0-9]{36,}",
    r"github_pat_[A-Za-z0-9_]{40,}",
    r"glpat-[A-Za-z0-9_\-]{20,}",
    r"hf_[A-Za-z0-9]{30,}",
    r"xox[abprs]-[A-Za-z0-9\-]{20,}",
    r"AIza[0-9A-Za-z_\-]{35}",
    r"ya29\.[0-9A-Za-z_\-]{20,}",
    r"(?:sk|rk|pk)_(?:live|test)_[0-9A-Za-z]{20,}",
    r"SG\.[A-Za-z0-9_\-]{20,}\.[A-Za-z0-9_\-]{20,}",
    r"npm_[A-Za-z0-9]{36}",
    r"pypi-[A-Za-z0-9_\-]{50,}",
    r"eyJ[A-Za-z0-9_\-]{10,}\.eyJ[A-Za-z0-9_\-]{10,}\.[A-Za-z0-9_\-]{10,}",
    r"-----BEGIN [A-Z ]*PRIVATE KEY-----.*?(?:-----END [A-Z ]*PRIVATE KEY-----|\Z)",
    r"(?<=://)[^\s/:@]+:[^\s/@]{6,}(?=@)",
    r"(?i:(?<=bearer )[A-Za-z0-9._\-]{20,})",
]
_SECRET_NAME = re.compile(r"(?i)(key|token|secret|password|passwd|credential)")
_FORM = re.compile("|".join(f"(?:{form})" for form in _FORMS), re.DOTALL)
MIN_VALUE = 8
"""Shorter values of the environment are words, not secrets."""


def redact(text: str, environment: Mapping[str, str] | None = None) -> str:
    """Redact secrets in text; uses the process environment unless another is given."""
    return _searched(environment).sub(REDACTED, text) if text else text


def found(text: str, environment: Mapping[str, str] | None = None) -> int:
    """Count the secrets in a text."""
    return len(_searched(environment).findall(text))


def _searched(environment: Mapping[str, str] | None) -> re.Pattern[str]:
    return of_this_process() if environment is None else _pattern(environment)


@cache
def of_this_process() -> re.Pattern[str]:
    """Return the pattern for this process's environment, compiled on first use."""
    return _pattern(os.environ)


def _pattern(environment: Mapping[str, str]) -> re.Pattern[str]:
    named = (value for name, value in environment.items() if _SECRET_NAME.search(name))
    values = sorted({value for value in named if len(value) >= MIN_VALUE}, key=len, reverse=True)
    return re.compile("|".join([*map(re.escape, values), _FORM.pattern]), re.DOTALL)
