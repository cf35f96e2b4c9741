"""The command line: what each verb prints, and the code it ends with."""

import io
import json
import re
import sys

import pytest
from tpu_matrix import cli
from tpu_matrix.commands import workspace

from tests.tools.factory import NOW, copy_example, example_row, record_data

VERBS = ["lint", "list", "show", "record", "status", "render", "schema"]


@pytest.fixture
def root(tmp_path, monkeypatch):
    copied = copy_example(tmp_path)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(workspace, "utc_now", lambda: NOW)
    for name in ("lint", "record"):
        monkeypatch.setattr(f"tpu_matrix.commands.{name}.utc_now", lambda: NOW)
    return copied


@pytest.fixture
def call(root, capsys):
    def run(*arguments):
        with pytest.raises(SystemExit) as ended:
            cli.main(arguments)
        output = capsys.readouterr()
        return int(ended.value.code or 0), output.out, output.err

    return run


def break_claims(root):
    path = root / "models" / "llama.yaml"
    path.write_text(path.read_text().replace("tier: nightly", "tier: nightli"))


def recorded(tmp_path, kind="virtual"):
    path = tmp_path / "run.json"
    path.write_text(json.dumps(record_data(example_row(), kind)))
    return str(path)


@pytest.mark.parametrize("verb", VERBS)
def test_the_help_of_every_verb_shows_an_example(verb, call):
    code, out, _ = call(verb, "--help")
    assert code == 0
    assert f"Example: tpu-matrix {verb}" in out


def test_no_verb_prints_the_help(call):
    assert "Usage: tpu-matrix" in "".join(call()[1:])


@pytest.mark.parametrize(
    "arguments", [["lnit"], ["list", "--nope"], ["show"], ["status", "--require", "magic"]]
)
def test_a_wrong_command_line_ends_with_2(arguments, call):
    code, _, err = call(*arguments)
    assert code == 2
    assert "Traceback" not in err


def test_lint_of_a_clean_matrix_ends_with_0(call):
    assert call("lint") == (0, "", "2 rows, 0 findings\n")


def test_lint_prints_findings_as_file_line_column_code(call, root):
    break_claims(root)
    code, out, _ = call("lint")
    assert code == 1
    assert out == (
        "support_matrix/models/llama.yaml:15:11 TM006 'tier' is 'nightli', which is not a known value; "
        "did you mean 'nightly'?\n"
    )


def test_lint_for_a_program_is_json(call, root):
    break_claims(root)
    code, out, _ = call("lint", "--json")
    [finding] = json.loads(out)["findings"]
    assert code == 1
    assert (finding["code"], finding["line"], finding["column"]) == ("TM006", 15, 11)


def test_list_names_every_row(call):
    code, out, _ = call("list")
    assert code == 0
    assert [line.split() for line in out.splitlines()] == [
        ["ROW", "CHECKPOINT", "HARDWARE", "TIER"],
        ["tiny", "example/tiny", "v7x-2", "nightly"],
        ["tiny-recipe", "example/tiny", "v6e-1", "recipe"],
    ]


def test_list_of_a_matrix_with_findings_shows_the_rest_and_ends_with_1(call, root):
    break_claims(root)
    code, out, err = call("list")
    assert code == 1
    assert "tiny-recipe" in out
    assert "TM006" in err


def test_show_prints_the_exact_command(call):
    code, out, _ = call("show", "tiny")
    assert code == 0
    assert f"command    {' '.join(example_row().argv)}\n" in out


def test_show_for_a_program_has_what_a_record_needs(call):
    row = json.loads(call("show", "tiny", "--json")[1])
    assert (row["id"], row["args_hash"]) == (example_row().id, example_row().args_hash)
    assert row["argv"] == list(example_row().argv)
    assert row["metrics"] == {"accuracy": "gsm8k.exact_match", "virtual": "demo.expected_answers"}


def test_an_unknown_row_is_one_sentence_with_the_nearest_name(call):
    code, _, err = call("show", "tinny")
    assert (code, err) == (2, "tpu-matrix: ROW: there is no row 'tinny'; did you mean 'tiny'?\n")


def test_a_stable_id_of_an_earlier_claim_is_not_answered_with_the_present_one(call):
    code, _, err = call("show", "tiny:v7x-2:00000000")
    assert code == 2
    assert f"has changed; it is now {example_row().id!r}" in err


def test_a_record_from_a_file_shows_in_the_status(call, tmp_path):
    code, out, _ = call("record", recorded(tmp_path))
    assert (code, out) == (0, f"recorded: virtual pass for {example_row().id} in evidence\n")
    assert call("record", recorded(tmp_path))[1].startswith("already recorded: ")
    code, out, _ = call("status", "tiny", "--now", NOW.isoformat())
    assert code == 0
    assert re.search(r"On its hardware +never-run +no run is recorded", out)
    assert re.search(r"Virtual TPU +pass +demo.expected_answers 1", out)
    assert "2026-11-30 11:00 UTC on 1 virtual device" in out
    assert "vllm 0.33.0, torch 2.14.0" in out
    assert "table: docs/support-matrix/llama.md#row-tiny" in out


def test_a_record_comes_from_stdin_too(call, monkeypatch):
    data = json.dumps(record_data(example_row(), "virtual")).encode()
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(data)))
    assert call("record")[0] == 0


def test_a_refused_record_ends_with_1_and_every_reason(call, tmp_path):
    path = tmp_path / "run.json"
    path.write_text(
        json.dumps(record_data(example_row(), "hardware", metrics={}, commit="unknown"))
    )
    code, _, err = call("record", str(path))
    assert code == 1
    assert "run.json: refused for 2 reasons; " in err
    assert err.count("\n  - ") == 2


def test_claims_with_findings_take_no_evidence(call, root, tmp_path):
    path = recorded(tmp_path)
    break_claims(root)
    code, _, err = call("record", path)
    assert code == 1
    assert "the claims have 1 finding;" in err
    assert not (tmp_path / "evidence").exists()


def test_a_missing_record_file_is_one_sentence(call):
    code, _, err = call("record", "none.json")
    assert (code, err.count("\n")) == (2, 1)


def test_a_required_kind_decides_the_exit_code(call, tmp_path):
    call("record", recorded(tmp_path))
    now = NOW.isoformat()
    assert call("status", "tiny", "--now", now, "--require", "virtual")[0] == 0
    assert call("status", "tiny", "--now", now, "--require", "hardware")[0] == 1
    assert call("status", "--now", now, "--require", "virtual")[0] == 1


def test_status_for_a_program_carries_the_record(call, tmp_path):
    call("record", recorded(tmp_path))
    rows = json.loads(call("status", "--json", "--now", NOW.isoformat())[1])
    cells = rows[0]["cells"]
    assert [cells[kind]["status"] for kind in ("hardware", "compiles", "virtual")] == [
        "never-run",
        "never-run",
        "pass",
    ]
    assert cells["virtual"]["record"]["metrics"] == {"demo.expected_answers": 1.0}


def test_evidence_that_cannot_be_read_is_named_and_ends_with_1(call, tmp_path):
    call("record", recorded(tmp_path))
    [path] = (tmp_path / "evidence").glob("*.jsonl")
    path.write_bytes(path.read_bytes() + b"half a li")
    code, out, err = call("status", "tiny", "--now", NOW.isoformat())
    assert code == 1
    assert "evidence/2026-11.jsonl:2:1 TM050 the last line is cut off" in err
    assert re.search(r"Virtual TPU +pass", out)


@pytest.mark.parametrize("text", ["yesterday", "2026-11-30", "2026-11-30T12:00:00"])
def test_a_time_without_a_zone_is_refused(text, call):
    code, _, err = call("status", "--now", text)
    assert code == 2
    assert "is not a time with a zone" in err


def test_render_writes_pages_that_the_check_accepts_until_they_change(call, tmp_path):
    assert call("render", "--check")[0] == 1
    assert call("render")[0] == 0
    assert call("render", "--check") == (0, "", "")
    page = tmp_path / "docs" / "support-matrix" / "llama.md"
    page.write_text(page.read_text().replace("never-run", "pass"))
    code, out, _ = call("render", "--check")
    assert code == 1
    assert out == (
        "docs/support-matrix/llama.md: the file differs from what its data gives; "
        "run `tpu-matrix render` and commit the result\n"
    )


def test_the_page_of_a_family_that_is_gone_is_drift_and_a_guide_is_not(call, tmp_path):
    call("render")
    directory = tmp_path / "docs" / "support-matrix"
    (directory / "guide.md").write_text("# By hand\n")
    (directory / "gemma.md").write_text((directory / "llama.md").read_text())
    assert "gemma.md: nothing generates this file any more" in call("render", "--check")[1]
    call("render")
    assert sorted(path.name for path in directory.glob("*.md")) == [
        "guide.md",
        "index.md",
        "llama.md",
    ]


def test_local_evidence_is_rendered_only_when_named(call, tmp_path):
    call("record", recorded(tmp_path))
    call("render")
    assert "**pass**" not in (tmp_path / "docs" / "support-matrix" / "llama.md").read_text()
    call("render", "--evidence", "evidence", "--output", "build")
    assert "**pass**" in (tmp_path / "build" / "llama.md").read_text()


def test_claims_with_findings_are_not_rendered(call, root, tmp_path):
    break_claims(root)
    assert call("render")[0] == 1
    assert not (tmp_path / "docs").exists()


def test_schemas_are_written_and_checked(call, root):
    assert call("schema", "--check")[0] == 1
    assert call("schema")[0] == 0
    assert call("schema", "--check") == (0, "", "")
    schema = json.loads((root / "schema" / "family.schema.json").read_text())
    assert schema["$defs"]["Row"]["additionalProperties"] is False


def test_a_matrix_that_is_no_directory_is_one_sentence(call):
    code, _, err = call("list", "--matrix", "nowhere")
    assert (code, err) == (2, "tpu-matrix: nowhere: this is not a directory; give --matrix DIR\n")


@pytest.mark.parametrize(
    "arguments", [["list"], ["status"], ["status", "tiny"], ["lint", "--json"], ["--help"]]
)
def test_what_is_not_a_terminal_gets_no_colours(arguments, call):
    assert "\x1b" not in "".join(call(*arguments)[1:])
