"""`arise view` of an analysis: from the gaps to a rubric, its quotes, and the turn that shows it."""

import json
import re
import zipfile
from html import unescape
from pathlib import Path

import pytest
from fastapi.testclient import TestClient
from typer.testing import CliRunner

from arise.cli.app import app
from arise.report.analysis.serving import create_app
from arise.types import ToolCall, Turn
from tests.dashboard.test_hostile_text import HOSTILE, Elements
from tests.trajectory_files import chat, contrast, dump_lines


def analysed(source: Path, out: Path, *more: str) -> Path:
    done = CliRunner().invoke(app, ["analyze", str(source), "--out", str(out), *more])
    assert done.exit_code == 0, done.output
    return out


def opened(folder: Path) -> TestClient:
    return TestClient(create_app(folder), base_url="http://127.0.0.1", raise_server_exceptions=True)


def hrefs(html: str, pattern: str) -> list[str]:
    return [unescape(href) for href in re.findall(rf'href="({pattern})"', html)]


def pages(client: TestClient, most: int = 80) -> dict[str, str]:
    """Every page that can be reached by links."""
    found: dict[str, str] = {}
    queue = ["/"]
    while queue and len(found) < most:
        address = queue.pop(0).partition("#")[0]
        if address in found:
            continue
        answer = client.get(address)
        assert answer.status_code == 200, address
        if "csv=" not in address:
            found[address] = answer.text
            queue += hrefs(answer.text, '/(?!static)[^"]*')
    return found


def test_from_the_gaps_to_the_quoted_turn(tmp_path: Path) -> None:
    contrast(tmp_path / "runs.jsonl")
    out = analysed(tmp_path / "runs.jsonl", tmp_path / "out")
    facts = json.loads((out / "analysis.json").read_text())
    gap = facts["gaps"][0]
    client = opened(out)
    first = client.get("/").text
    assert "found 50 · parsed 50" in first
    assert "50.0 %" in first
    assert gap["habit"] in first
    rubric = client.get(f"/gaps/{gap['id']}").text
    assert gap["rule"] in unescape(rubric)
    assert gap["skill"] in unescape(rubric)
    for quote in gap["quotes"]:
        assert quote["quote"] in unescape(rubric)
    turn = next(href for href in hrefs(rubric, '/attempts/[^"?]*[?]turn=[^"]*') if "#turn-" in href)
    attempt = client.get(turn.partition("#")[0]).text
    marked = re.findall(r"<mark>(.*?)</mark>", attempt)
    assert [unescape(text) for text in marked] == [gap["quotes"][0]["quote"]]
    number = turn.rpartition("-")[2]
    shown = attempt.partition(f'id="turn-{number}"')[2].partition("</article>")[0]
    assert "<mark>" in shown
    assert gap["habit"] in unescape(shown)


def test_every_page_is_reached_and_behind_the_guard(tmp_path: Path) -> None:
    contrast(tmp_path / "runs.jsonl")
    client = opened(analysed(tmp_path / "runs.jsonl", tmp_path / "out"))
    found = pages(client)
    assert any(address.startswith("/gaps/") for address in found)
    assert sum(address.startswith("/attempts/") for address in found) > 20
    for html in found.values():
        assert "style=" not in html
        assert "<style" not in html
        assert "<h1>" in html
    assert client.get("/", headers={"host": "evil.example"}).status_code == 400
    assert client.post("/").status_code == 405
    assert "default-src 'none'" in client.get("/").headers["content-security-policy"]
    assert client.get("/?csv=rates").headers["content-type"].startswith("text/csv")
    for wrong in ("/gaps/none", "/attempts/none", "/elsewhere", "/static/../facts.py"):
        answer = client.get(wrong)
        assert answer.status_code == 404
        assert "To the gaps" in answer.text or wrong.startswith("/static")


def test_attempts_are_found_by_outcome_behaviour_and_task(tmp_path: Path) -> None:
    contrast(tmp_path / "runs.jsonl")
    out = analysed(tmp_path / "runs.jsonl", tmp_path / "out")
    client = opened(out)
    gap = json.loads((out / "analysis.json").read_text())["gaps"][0]

    def count(query: str) -> str:
        found = re.search(r"<dt>attempts</dt><dd>(\d+)</dd>", client.get(f"/attempts{query}").text)
        assert found
        return found[1]

    assert count("") == "50"
    assert count("?outcome=failed") == "25"
    assert count(f"?behaviour={gap['id']}") == str(gap["overall"]["count"])
    assert count(f"?behaviour={gap['id']}&outcome=passed") == str(gap["in_passes"]["count"])
    assert count("?task=T11") == "4"
    assert client.get("/attempts?outcome=perhaps").status_code == 422


def test_a_file_that_is_gone_or_has_changed_leaves_the_turns_around_the_quotes(tmp_path: Path) -> None:
    source = contrast(tmp_path / "runs.jsonl")
    out = analysed(source, tmp_path / "out")
    gap = json.loads((out / "analysis.json").read_text())["gaps"][0]
    quote = gap["quotes"][0]
    href = hrefs(opened(out).get(f"/gaps/{gap['id']}").text, '/attempts/[^"?]*[?]turn=[^"]*')[0].partition("#")[0]
    assert "Only the turns around" not in opened(out).get(href).text
    rows = source.read_text()
    for now, said in ((rows.replace("sort in.csv", "sort -u in.csv"), "has changed"), (None, "no longer below")):
        source.unlink() if now is None else source.write_text(now)
        again = tmp_path / f"moved-{now is None}"
        again.mkdir()
        for name in ("analysis.json", "attempts.jsonl"):
            (again / name).write_bytes((out / name).read_bytes())
        html = opened(again).get(href).text
        assert said in html
        assert quote["quote"] in unescape(html)
        assert "<mark>" in html


def test_the_folder_may_be_read_from_elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    contrast(tmp_path / "work" / "runs.jsonl")
    (tmp_path / "other").mkdir()
    monkeypatch.chdir(tmp_path / "work")
    analysed(Path("runs.jsonl"), Path("out"))
    monkeypatch.chdir(tmp_path / "other")
    client = opened(tmp_path / "work" / "out")
    address = hrefs(client.get("/attempts").text, '/attempts/[^"?]+')[0]
    assert "no longer below" not in client.get(address).text


def test_attempts_in_archives_and_of_several_paths_are_read_again(tmp_path: Path) -> None:
    for name in ("one", "two"):
        dump_lines(tmp_path / name / "runs.jsonl", [chat(f"{name}{n}", float(n), reads_back=bool(n)) for n in range(2)])
    with zipfile.ZipFile(tmp_path / "two" / "more.zip", "w") as archive:
        archive.writestr("deep/runs.jsonl", json.dumps(chat("zipped", 0.0, reads_back=False)) + "\n")
    out = tmp_path / "out"
    words = ["analyze", str(tmp_path / "one"), str(tmp_path / "two"), "--out", str(out)]
    assert CliRunner().invoke(app, words).exit_code == 0
    client = opened(out)
    addresses = hrefs(client.get("/attempts").text, '/attempts/[^"?]+')
    assert len(addresses) == 5
    for address in addresses:
        html = client.get(address).text
        assert "Only the turns around" not in html
        assert 'id="turn-1"' in html


def test_mapped_fields_are_read_again(tmp_path: Path) -> None:
    rows = []
    for number in range(4):
        row = chat(f"t{number}", None, reads_back=False)
        rows.append({"log": row["messages"], "grade": number % 2, "name": row["task_id"]})
    source = dump_lines(tmp_path / "runs" / "mine.jsonl", rows)
    out = analysed(source.parent, tmp_path / "out", "--map", "messages=log,outcome=grade,task=name")
    client = opened(out)
    addresses = hrefs(client.get("/attempts").text, '/attempts/[^"?]+')
    assert len(addresses) == 4
    for address in addresses:
        html = client.get(address).text
        assert "Only the turns around" not in html
        assert html.count('class="turn" id="turn-') == 4


def test_a_long_turn_is_cut_around_its_quote_and_read_on(tmp_path: Path) -> None:
    from arise.report.dashboard.pages.turns import piece_of, turns_from

    turn = Turn("a" * 9000 + "the quote" + "b" * 9000, (ToolCall("bash", {"command": "ls"}),))
    (shown,) = turns_from([turn], 5, lambda number: "the quote" if number == 5 else "")
    text = shown.texts[0]
    assert text.cut
    assert text.marked[1] == "the quote"
    assert piece_of(turn, 5, 0).texts[0].text.startswith("aaa")


def test_no_page_runs_what_is_written_in_a_trajectory(tmp_path: Path) -> None:
    said = HOSTILE.replace("\ud800", "")
    rows = []
    for number in range(8):
        row = chat(f"{said}{number}", float(number % 2), reads_back=bool(number % 2))
        for message in row["messages"]:
            message["content"] = f"{message['content']} {said}"
        function = row["messages"][-3]["tool_calls"][0]["function"]
        function["arguments"] = json.dumps({"command": f"sort in.csv > out.csv # {said}"})
        rows.append(row)
    source = tmp_path / "<b>'&"
    dump_lines(source / "runs.jsonl", rows)
    found = pages(opened(analysed(source, tmp_path / "out")))
    assert sum(address.startswith("/attempts/") for address in found) > 5
    for html in found.values():
        seen = Elements()
        seen.feed(html)
        assert "img" not in seen.tags
        assert "b" not in seen.tags or "<b>'" not in html
        assert not [name for name in seen.attributes if name.startswith("on") or name == "style"]
        assert "alert(1)</script>" not in html
        assert "\x1b" not in html
        assert "\u202e" not in html
    assert sum(r"\x1b" in html for html in found.values()) > 5
