"""The needs of tasks, by the names used in a configuration."""

from typing import Literal

TaskNeed = Literal[
    "artifacts",
    "collect",
    "compose",
    "cpus",
    "docker_image",
    "dockerfile",
    "env",
    "gpus",
    "healthcheck",
    "mcp_servers",
    "memory",
    "network",
    "prompt_prefix",
    "pytest_plugins",
    "service",
    "setup_commands",
    "skills_dir",
    "storage",
    "user",
    "verifier_environment",
    "workdir",
]
"""Needs of tasks that not every kind of sandbox meets."""
