# ruff: noqa: E501 - one task per entry
"""Twenty-one small tasks in both formats, each for one thing that a task can ask of its environment."""

from collections.abc import Mapping
from pathlib import Path

from tests.containers.base import NAME

FROM = f"FROM {NAME}\n"
PASS_IF = "if {check}; then echo 1; else echo 0; fi > /logs/verifier/reward.txt\n"


def test(check: str) -> str:
    return PASS_IF.format(check=check)


TOML = 'schema_version = "1.4"\n[task]\nname = "fixtures/{name}"\n[metadata]\ncategory = "{domain}"\n{extra}'
LIMITS = "[environment]\nmemory_mb = 256\nstorage_mb = 200\n"

Files = Mapping[str, str]


def harbor(name: str, extra: str = LIMITS, domain: str = "systems", **files: str) -> Files:
    return {"task.toml": TOML.format(name=name, domain=domain, extra=extra), "instruction.md": f"Do {name}.\n", **files}


def benchflow(extra: str, **files: str) -> Files:
    head = f"---\nschema_version: '1.3'\nmetadata:\n  category: data\n{extra}---\n## prompt\nDo it.\n"
    return {"task.md": head, **files}


def parts(
    dockerfile: str, check: str, solve: str, prefix: str = "", tests: str = "tests", solution: str = "solution"
) -> dict[str, str]:
    return {
        "environment/Dockerfile": FROM + dockerfile,
        f"{prefix}{tests}/test.sh": test(check),
        f"{prefix}{solution}/solve.sh": solve + "\n",
    }


SEPARATE = 'artifacts = ["/srv/out"]\n' + TOML.replace(
    "{extra}", LIMITS + '[verifier]\nenvironment_mode = "separate"\n'
)
STEPS = LIMITS + (
    '[[steps]]\nname = "first"\nmin_reward = 1.0\n[[steps]]\nname = "second"\n[steps.verifier]\ntimeout_sec = 30\n'
)

TASKS: dict[str, Files] = {
    "env": harbor("env", LIMITS + 'env = { COLOUR = "blue" }\n', **parts("ENV SHAPE=round\nWORKDIR /app\n", '[ "$(cat /app/a)" = "blue round" ]', 'echo "$COLOUR $SHAPE" > a')),
    "user": harbor("user", **parts("RUN useradd -m worker && mkdir /work && chown worker /work\nUSER worker\nWORKDIR /work\n", '[ "$(cat /work/who)" = worker ] && [ "$(stat -c %U /work/who)" = worker ]', "id -un > who")),
    "agent-user": harbor("agent-user", LIMITS + '[agent]\nuser = "worker"\n[verifier]\nuser = "root"\n', **parts("RUN useradd -m worker\n", '[ "$(stat -c %U /home/worker/x)" = worker ] && [ "$(id -u)" = 0 ]', "touch ~worker/x")),
    "verifier-user": harbor("verifier-user", LIMITS + '[verifier]\nuser = "checker"\n', **parts("RUN useradd -m checker\n", '[ "$(id -un)" = checker ] && [ -e /etc/made ]', "touch /etc/made")),
    "workdir": harbor("workdir", **parts("WORKDIR /deep/er\nRUN echo 7 > /deep/er/seven\n", '[ "$(cat /deep/er/copy)" = 7 ]', "cp seven copy")),
    "missing-workdir": harbor("missing-workdir", LIMITS + 'workdir = "/made/here"\n', **parts("", "[ -e /made/here/x ]", "touch x")),
    "files": harbor("files", **parts("COPY data.csv /data/\nWORKDIR /data\n", '[ "$(cat /data/sum)" = 6 ]', "awk '{s+=$1} END {print s}' data.csv > sum"), **{"environment/data.csv": "1\n2\n3\n"}),
    "outside-the-workdir": harbor("outside-the-workdir", **parts("WORKDIR /app\n", "[ -x /usr/local/bin/greet ] && [ \"$(/usr/local/bin/greet)\" = hi ]", "printf '#!/bin/sh\\necho hi\\n' > /usr/local/bin/greet; chmod +x /usr/local/bin/greet")),
    "healthcheck": harbor("healthcheck", LIMITS + 'setup_commands = ["touch /ready"]\n[environment.healthcheck]\ncommand = "test -e /ready"\ninterval_sec = 0.1\n', **parts("", "[ -e /ready ] && [ -e /done ]", "touch /done")),
    "network-none": harbor("network-none", LIMITS + 'network_mode = "no-network"\n', **parts("", '[ "$(cat /r)" = closed ]', "(echo > /dev/tcp/1.1.1.1/80) 2>/dev/null && echo open > /r || echo closed > /r")),
    "network-list": harbor("network-list", LIMITS + 'network_mode = "allowlist"\nallowed_hosts = ["example.org"]\n', **parts("", '[ "$(cat /r)" = proxied ]', '[ -n "$http_proxy" ] && echo proxied > /r')),
    "network-public": harbor("network-public", LIMITS + 'network_mode = "public"\n', **parts("", '[ "$(cat /r)" = 1 ]', "grep -c tap0 /proc/net/dev > /r; [ -s /r ] && [ $(cat /r) = 1 ] || ls /sys/class/net | grep -c -e eth0 -e tap0 > /r")),
    "resources": harbor("resources", "[environment]\ncpus = 1\nmemory_mb = 128\nstorage_mb = 1500\n", **parts("", '[ "$(stat -c %s /big)" = 629145600 ]', "head -c 600M /dev/zero > /big")),
    "json-reward": {**harbor("json-reward", **parts("", "true", "touch /x")), "tests/test.sh": "v=$([ -e /x ] && echo 1 || echo 0)\nprintf '{\"reward\": %s, \"speed\": 0.5}' $v > /logs/verifier/reward.json\n"},
    "separate-verifier": {
        **harbor("separate-verifier", **parts("RUN mkdir /srv/out\n", '[ "$(cat /srv/out/answer)" = 42 ] && [ ! -e /etc/agent-was-here ]', "echo 42 > /srv/out/answer; touch /etc/agent-was-here")),
        "task.toml": SEPARATE.format(name="separate-verifier", domain="systems"),
    },
    "steps": {
        **harbor("steps", STEPS),
        "environment/Dockerfile": FROM + "WORKDIR /app\n",
        "steps/first/instruction.md": "First.\n", "steps/second/instruction.md": "Second.\n",
        "steps/first/tests/test.sh": test("[ -e /app/one ] && [ ! -e /app/two ]"), "steps/first/solution/solve.sh": "touch one\n",
        "steps/second/tests/test.sh": test("[ -e /app/one ] && [ -e /app/two ] && [ -e /app/given ]"), "steps/second/solution/solve.sh": "touch two\n",
        "steps/second/workdir/setup.sh": "touch given\n",
    },
    "shared-tests": {
        **harbor("shared-tests", LIMITS + '[[steps]]\nname = "first"\n[[steps]]\nname = "second"\n'),
        "environment/Dockerfile": FROM + "WORKDIR /app\n",
        "tests/test.sh": test('[ -e "/app/$(cat /tests/wanted)" ] && [ -e /tests/common ]'), "tests/wanted": "one\n", "tests/common": "x\n",
        "steps/first/instruction.md": "First.\n", "steps/first/solution/solve.sh": "touch one\n",
        "steps/second/instruction.md": "Second.\n", "steps/second/solution/solve.sh": "touch two\n", "steps/second/tests/wanted": "two\n",
    },
    "named-image": {**harbor("named-image", LIMITS + f'docker_image = "{NAME}"\nworkdir = "/app"\n', **parts("RUN exit 1 # the image was built before\n", '[ -e /app/x ] && [ ! -e /app/data.csv ]', "touch x")), "environment/data.csv": "1\n"},
    "named-image-and-files": harbor("named-image-and-files", LIMITS + f'docker_image = "{NAME}"\nworkdir = "/app"\n', **{"environment/in/data.csv": "1\n2\n", "tests/test.sh": test('[ "$(cat /app/sum)" = 3 ]'), "solution/solve.sh": "awk '{s+=$1} END {print s}' in/data.csv > sum\n"}),
    "compose": {
        **harbor("compose", **parts("COPY app /app\nWORKDIR /app\n", '[ "$(cat /app/site/status)" = up ] && [ $TEST_DIR = /tests ]', "echo up > $SITE/status")),
        "app/site/page": "hi\n",
        "environment/docker-compose.yaml": "services:\n  main:\n    build: {context: '${CONTEXT_DIR}/..', dockerfile: '${CONTEXT_DIR}/Dockerfile'}\n    command: [sh, -c, sleep infinity]\n    environment: ['TEST_DIR=${TEST_DIR}', SITE=/app/site]\n    network_mode: none\n",
    },
    "benchflow": benchflow("environment:\n  memory_mb: 256\n  storage_mb: 200\n  env: {COLOUR: red}\n", **parts("WORKDIR /root\n", '[ "$(cat /root/c)" = red ]', "echo $COLOUR > c", tests="verifier", solution="oracle")),
    "benchflow-skills": benchflow("sandbox:\n  memory_mb: 256\n  storage_mb: 200\n", **{**parts("COPY skills /root/.agents/skills\n", "[ \"$(cat /found)\" = 1 ]", "ls /root/.agents/skills/*/SKILL.md | wc -l > /found", tests="verifier", solution="oracle"), "environment/skills/counting/SKILL.md": "---\nname: counting\ndescription: Count.\n---\nCount.\n"}),
}  # fmt: skip


def write(name: str, folder: Path) -> Path:
    """Write one of the tasks below a folder."""
    for path, text in TASKS[name].items():
        target = folder / name / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text)
    return folder / name
