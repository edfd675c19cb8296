"""The needs of tasks, by the names used in a configuration."""

from typing import Literal

TaskNeed = Literal[
    "artifacts",
    "benchflow",
    "collect",
    "compose",
    "cpus",
    "docker_image",
    "dockerfile",
    "env",
    "gpu_types",
    "gpus",
    "harborignore",
    "hardening",
    "healthcheck",
    "mcp_servers",
    "memory",
    "network",
    "prior_trajectory",
    "profile",
    "prompt_prefix",
    "pytest_plugins",
    "roles",
    "service",
    "setup_commands",
    "skills_dir",
    "storage",
    "tpu",
    "unknown_keys",
    "user",
    "verifier_document",
    "verifier_environment",
    "workdir",
]
"""Needs of tasks that not every kind of sandbox meets."""
