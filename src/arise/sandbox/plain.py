"""Dockerfiles that a sandbox without images can stand in for."""

import re

# A Dockerfile that asks for no more than a sandbox without images is: a plain system with the task's files in /app.
_PLAIN = re.compile(
    r"FROM\s+(debian|ubuntu)(:[\w.-]+)?|WORKDIR\s+/app/?|COPY\s+\./?\s+(\.|\./|/app/?)|(LABEL|MAINTAINER)\s.*",
    re.IGNORECASE,
)


def beyond_plain(dockerfile: str) -> str:
    """The first line of a Dockerfile that a sandbox without images cannot stand in for, "" where there is none."""
    for line in (line.strip() for line in re.sub(r"\\\n", " ", dockerfile).splitlines()):
        if line and not line.startswith("#") and not _PLAIN.fullmatch(line):
            return line
    return ""
