"""Your own model folder and tasks through the commands: train, evaluate, export, chat, and what is refused."""

import json
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from transformers import AutoModelForCausalLM, AutoTokenizer

from arise.engines.formats.generic import GenericFormat
from arise.run.reader import RunReader
from arise.testing.fake_llm import Action, Ask, FakeLLM, Say, Status, in_thread
from arise.types import Message
from tests.e2e.own_model import OwnModel
from tests.e2e.runs import arise, call, environment
from tests.tool_models import write_tool_model


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> OwnModel:
    return OwnModel(tmp_path_factory.mktemp("tools"))


@pytest.fixture(scope="module")
def run(place: OwnModel) -> Path:
    done = place.train("run")
    assert done.returncode == 0, done.stderr
    return place.root / "run"


def test_two_iterations_train_on_calls_that_were_run(run: Path) -> None:
    with RunReader.open(run) as reader:
        iterations = reader.iterations()
        rollouts = reader.query("SELECT stop, fault, turns, reward FROM rollouts")
    assert len(iterations) == 2
    first = iterations[0].metrics
    assert (first["skipped"], first["kept_share"]) == (0.0, 1.0)
    assert first["generated_tokens"] > 0
    assert [fault for _, fault, _, _ in rollouts if fault] == []
    finished = [reward for stop, _, turns, reward in rollouts if stop == "finished" and turns == 2]
    assert len(finished) > len(rollouts) / 2  # a call that was run, then an answer
    assert set(finished) == {0.0, 1.0}


def test_the_exported_model_loads_with_transformers_and_gives_the_same_answers(place: OwnModel, run: Path) -> None:
    out = place.root / "hf"
    done = call(place.cache, "export", str(run), "--format", "hf", "--out", str(out), "--at", "1")
    assert done.returncode == 0, done.stderr
    adapter = place.root / "adapter"
    assert call(place.cache, "export", str(run), "--format", "peft", "--out", str(adapter), "--at", "1").returncode == 0
    from peft import PeftModel

    merged = AutoModelForCausalLM.from_pretrained(out).eval()
    start = AutoModelForCausalLM.from_pretrained(place.model).eval()
    prompt = GenericFormat(AutoTokenizer.from_pretrained(out)).prompt([Message("user", "Write 42 to answer.txt.")])
    with torch.no_grad():
        ids = torch.tensor([prompt])
        before, after = start(ids).logits, merged(ids).logits
        with_adapter = PeftModel.from_pretrained(start, str(adapter)).eval()(ids).logits
    assert not torch.allclose(before, after, atol=1e-4)
    assert torch.allclose(after, with_adapter, atol=1e-4)


def test_an_export_refuses_a_full_folder_and_a_checkpoint_that_is_not_there(place: OwnModel, run: Path) -> None:
    full = call(place.cache, "export", str(run), "--format", "hf", "--out", str(place.model))
    assert (full.returncode, "is not an empty folder" in full.stderr) == (5, True), full.stderr
    missing = call(place.cache, "export", str(run), "--format", "hf", "--out", str(place.root / "x"), "--at", "7")
    assert "holds no checkpoint of iteration 7" in missing.stderr
    wrong = call(place.cache, "export", str(run), "--format", "jsonl", "--at", "1")
    assert "--at chooses a checkpoint" in wrong.stderr


@pytest.mark.parametrize("form", [[], ["--json"]])
def test_chat_answers_line_by_line(place: OwnModel, run: Path, form: list[str]) -> None:
    done = subprocess.run(
        arise("chat", str(run), "--max-tokens", "16", *form),
        env=environment(place.cache),
        input="hello\nand again\n",
        capture_output=True,
        text=True,
        timeout=280,
    )
    assert done.returncode == 0, done.stderr
    lines = done.stdout.strip().splitlines()
    assert f"{run} at iteration 2;" in lines[0]
    assert len(lines) >= 3
    if form:
        assert {"text", "reasoning", "finish", "note"} == set(json.loads(lines[2]))


@pytest.fixture
def server() -> Iterator[FakeLLM]:
    """A chat model that solves the task by one tool call of several lines.

    As `plain` it refuses tools, as `short` its window is full after the first turn.
    """

    def answer(ask: Ask) -> Action:
        if "tools" in ask.body and ask.model == "plain":
            return Status(400, body=json.dumps({"error": {"message": "tools are not supported"}}))
        last = ask.body["messages"][-1]
        if "Say ok" in last["content"]:
            return Say("ok", prompt_tokens=20, completion_tokens=1)
        if last["role"] == "tool" and ask.model == "short":
            return Status(400, body=json.dumps({"error": {"message": "no room", "code": "context_length_exceeded"}}))
        if last["role"] == "tool" or "<tool_response>" in last["content"]:
            return Say("Done.")
        command = "cat > answer.txt <<'E'\n42\nE\n"
        if ask.model == "plain":
            return Say(f"I write it.\n```bash\n{command}```")
        return Say("", calls=(("bash", {"command": command}),), finish="tool_calls")

    with in_thread(FakeLLM(answer)) as fake:
        yield fake


@pytest.mark.parametrize("model", ["native", "plain", "short"])
def test_a_model_behind_an_endpoint_solves_the_task_with_tool_calls(
    place: OwnModel, run: Path, server: FakeLLM, model: str
) -> None:
    done = call(
        place.cache, "eval", str(run), "--model", model, "--base-url", server.base_url, "--price", "0", "--json"
    )
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    assert "100.0" in json.dumps(found) or found.get("pass_rate") == 1.0, found
    asked = [ask.body for ask in server.asks if "Say ok" not in ask.user]
    assert ("tools" in asked[-1]) == (model != "plain")
    assert asked[-1]["messages"][-1]["role"] == ("user" if model == "plain" else "tool")


def test_a_run_of_the_shell_agent_evaluates_an_endpoint_with_tools(place: OwnModel, server: FakeLLM) -> None:
    shell = ["model.kind=pretrained", f"model.name={place.model}", "agent.kind=shell", "tasks.kind=harbor"]
    shell.append('tasks.allow_overlap=["three"]')
    folders = [f"tasks.train={place.root / 'train'}", f"tasks.evaluation={place.root / 'eval'}", "judge.kind=none"]
    sizes = ["train.iterations=1", "train.tasks_per_iteration=1", "train.group_size=2", "evaluation.attempts=1"]
    words = [part for change in (*shell, *folders, *sizes) for part in ("--set", change)]
    run = place.root / "shell"
    done = call(place.cache, "train", "--run-dir", str(run), *words)
    assert done.returncode == 0, done.stderr
    served = ("--model", "native", "--base-url", server.base_url, "--price", "0")
    done = call(place.cache, "eval", str(run), *served, "--tools")
    assert (done.returncode, "1 of 1" in done.stdout) == (0, True), done.stdout + done.stderr
    assert server.asks[-1].body["messages"][-1]["role"] == "tool"
    assert "give --model too" in call(place.cache, "eval", str(run), "--tools").stderr


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (["model.format=qwen9"], "model.format = 'qwen9' is unknown"),
        (["model.format=llama-3"], "does not fit this tokenizer"),
        (["sampling.context_length=200"], "tokens, the model's window is 200"),
    ],
)
def test_what_cannot_work_is_refused_before_anything_is_written(
    place: OwnModel, changes: list[str], message: str
) -> None:
    done = place.train("refused", *changes)
    assert done.returncode == 2, done.stdout + done.stderr
    assert message in done.stderr
    assert not (place.root / "refused" / "run.db").exists()


@pytest.mark.parametrize(
    ("template", "message"),
    [
        ("{% for m in messages %}{{ m.role }}: {{ m.content }}\n{% endfor %}", "cannot be continued behind a sampled"),
        ("{{ raise_exception('closed') }}", "closed"),
    ],
)
def test_a_template_that_cannot_be_continued_is_refused(
    place: OwnModel, tmp_path: Path, template: str, message: str
) -> None:
    folder = tmp_path / "model"
    write_tool_model(folder, epochs=0)
    (folder / "chat_template.jinja").write_text(template)
    done = place.train("refused", f"model.name={folder}")
    assert done.returncode == 2, done.stdout + done.stderr
    assert message in done.stderr
    assert not (place.root / "refused" / "run.db").exists()


def test_a_template_without_tools_is_announced_and_trains(place: OwnModel, tmp_path: Path) -> None:
    folder = write_tool_model(tmp_path / "model", "chatml", epochs=0)
    done = call(
        place.cache,
        "--log-level",
        "info",
        "train",
        "--run-dir",
        str(tmp_path / "run"),
        *place.arguments(f"model.name={folder}", "train.iterations=1", "train.max_staleness=0", "agent.max_tokens=8"),
    )
    assert done.returncode == 0, done.stderr
    assert "the chat template shows no tools" in done.stdout + done.stderr
    with RunReader.open(tmp_path / "run") as reader:
        assert reader.query("SELECT COUNT(*) FROM rollouts WHERE fault != '' OR turns < 2") == [(0,)]
