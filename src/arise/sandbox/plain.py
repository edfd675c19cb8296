"""Dockerfiles that a sandbox without images can replace."""

import re

# A Dockerfile that needs no more than a sandbox without images offers: a plain system with the task's files in /app.
_PLAIN = re.compile(
    r"FROM\s+(debian|ubuntu)(:[\w.-]+)?|WORKDIR\s+/app/?|COPY\s+\./?\s+(\.|\./|/app/?)|(LABEL|MAINTAINER)\s.*",
    re.IGNORECASE,
)


def beyond_plain(dockerfile: str) -> str:
    """Return the first line of a Dockerfile that a sandbox without images does not support; "" if there is none."""
    for line in (line.strip() for line in re.sub(r"\\\n", " ", dockerfile).splitlines()):
        if line and not line.startswith("#") and not _PLAIN.fullmatch(line):
            return line
    return ""
