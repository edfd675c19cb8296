"""The shell reader: operators, quotes, here-documents, loops; and what each command does to files."""

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from arise.analyst.acts import backup_like, check_like, path_like
from arise.analyst.operations import acts_of_shell
from arise.analyst.shell import parse

OPERATORS = [
    "'",
    '"',
    "\\",
    "$(",
    ")",
    "|",
    "&&",
    ";",
    ">",
    ">>",
    "<<EOF",
    "\nEOF\n",
    "\n",
    "2>&1",
    "#",
    "`",
    "\0",
    "=",
]
KEYWORDS = [
    "for f in",
    "do",
    "done",
    "${f%",
    "}",
    "*",
    "-o",
    "bash -c",
    "find . -exec",
    "{}",
    "sed -i",
    "grep",
    "python -c",
]
SHELL_PIECES = st.sampled_from([*OPERATORS, *KEYWORDS, "cat", "a.csv", "é", "x" * 50])
LONG_ROWS = ["'", '"', "\\", "a ", "$(", "<<E ", "|", "/", ".", "for f in x; do ", "'a' ", "> f ", "${"]


def acts(command: str) -> list[str]:
    """`read:in.csv write:out.csv`, the way the rows below are written."""
    return [f"{act.op}:{act.path}" if act.path else str(act.op) for act in acts_of_shell(command)]


@pytest.mark.parametrize(
    ("command", "expected"),
    [
        ("ls", "list"),
        ("ls -la data/", "list:data/"),
        ("find . -name '*.csv'", "list"),
        ("cat spec.txt", "read:spec.txt"),
        ("head -n 3 in.csv", "read:in.csv"),
        ("cat in.csv | head -n 3", "read:in.csv run"),
        ("cat in.csv | conv > out.csv", "use:in.csv run write:out.csv"),
        ("conv --unit m in.csv > out.csv", "run use:m use:in.csv write:out.csv"),
        ("conv in.csv -o out.csv", "run use:in.csv write:out.csv"),
        ("conv in.csv --output=out.csv", "run use:in.csv write:out.csv"),
        ("conv < in.csv > out.csv", "run use:in.csv write:out.csv"),
        ("sort -u in.csv", "read:in.csv"),
        ("sort -t , -k 2 in.csv > out.csv", "use:in.csv write:out.csv"),
        ("sort -o out.csv in.csv", "use:in.csv write:out.csv"),
        ("awk -F , '{print $1}' in.csv", "read:in.csv"),
        ("awk 1 in.csv", "read:in.csv"),
        ("sed -i 's/a/b/' in.csv", "use:in.csv write:in.csv"),
        ("sed -i.bak 's/a/b/' in.csv", "backup:in.csv use:in.csv write:in.csv"),
        ("grep -n -e x in.csv", "search:in.csv"),
        ("cp in.csv in.csv.bak", "backup:in.csv"),
        ("cat in.csv > in.csv.bak", "backup:in.csv write:in.csv.bak"),
        ("cp in.csv out.csv", "backup:in.csv write:out.csv"),
        ("cp a.csv b.csv dir/", "backup:a.csv backup:b.csv write:dir/a.csv write:dir/b.csv"),
        ("mv in.csv old/", "backup:in.csv write:old/in.csv"),
        ("mv in.csv in.csv.orig", "backup:in.csv"),
        ("rm -f in.csv", "delete:in.csv"),
        ("echo done", ""),
        ("echo x > out.txt", "write:out.txt"),
        ("echo x >> out.txt 2>/dev/null", "write:out.txt"),
        ("echo x | tee out.txt", "write:out.txt"),
        ("./check out.csv", "check:out.csv"),
        ("python3 tests/run_tests.py", "check"),
        ("python -m pytest -q", "check"),
        ("make test", "check:test"),
        ("diff a.csv b.csv", "check:a.csv check:b.csv"),
        ("test -s out.csv && echo yes", "list:out.csv"),
        ("[ -f out.csv ]", "list:out.csv"),
        ("conv --help", "probe"),
        ("which conv", "probe"),
        ("command -v conv", "probe"),
        ("pip install pandas", "install"),
        ("git commit -am x", "backup:*"),
        ("submit", "finish"),
        ("echo COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT", "finish"),
        ("cd /app && ls; cat a.txt", "list read:a.txt"),
        ("bash -lc 'cat a.txt | wc -l'", "read:a.txt run"),
        ("timeout 5 env A=1 cat a.txt # look", "read:a.txt"),
        ("x=$(cat a.txt)", "read:a.txt"),
        ("for f in a b; do conv $f.csv > ${f}.out; done", "run use:a.csv use:b.csv write:a.out write:b.out"),
        ("cat <<'EOF' > f.py\nopen('x.csv'); y > z\nEOF\nls", "write:f.py list"),
        ("python - <<'EOF'\nopen('out.csv','w').write(open('in.csv').read())\nEOF", "run use:in.csv write:out.csv"),
        ("python -c \"print(open('in.csv').read())\"", "run use:in.csv"),
        ("echo 'a > b'", ""),
        ("echo \"it's; fine\" > 'a b.txt'", "write:a b.txt"),
        ("cat 'unclosed", "read:unclosed"),
        ("> ;; | && <", ""),
        ("", ""),
    ],
)  # fmt: skip
def test_what_a_command_does(command: str, expected: str) -> None:
    assert " ".join(acts(command)) == expected


def test_spelling_ignores_blanks_and_quotes() -> None:
    (one,) = parse("conv  --unit 'm'   in.csv > out.csv")
    (two,) = parse('conv --unit m "in.csv"   >out.csv')
    assert one.text == two.text


@pytest.mark.parametrize("name", ["check", "./check.sh", "run_tests.py", "verify-output", "pytest", "tests/validate"])
def test_names_of_checks(name: str) -> None:
    assert check_like(name)


@pytest.mark.parametrize("name", ["checkout", "contest", "latest.csv", "conv", "protest.sh"])
def test_names_that_only_sound_like_checks(name: str) -> None:
    assert not check_like(name)


def test_names_of_copies_and_paths() -> None:
    assert all(map(backup_like, ["a.csv.bak", "a_backup.csv", "backup/a.csv", "a.orig", "a~"]))
    assert not any(map(backup_like, ["a.csv", "old.csv", "bakery.csv", "copyright.txt"]))
    assert all(map(path_like, ["a.csv", "d/x", "*.csv", "/app/in"]))
    assert not any(map(path_like, ["", "-o", "3.5", "word", "http://x.y/z", "a sentence. with dot", "$f.csv", ".."]))


@given(st.lists(SHELL_PIECES | st.text(max_size=8), max_size=40).map(" ".join))
def test_garbage_never_raises(command: str) -> None:
    acts_of_shell(command)


@pytest.mark.parametrize("piece", LONG_ROWS)
def test_reading_is_linear(piece: str) -> None:
    size = 40_000 // len(piece)
    started = time.process_time()
    acts_of_shell(piece * size)
    assert time.process_time() - started < 2.0
