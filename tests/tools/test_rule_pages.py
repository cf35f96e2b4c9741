"""Every rule is held to the failing and the passing example on its own page."""

import datetime as dt
import re
from pathlib import Path

import pytest
from tpu_matrix.evidence.store import read_file
from tpu_matrix.matrix.load import load
from tpu_matrix.matrix.rules import RULES, Context, run_rules

from tests.tools.factory import NOW, copy_example, example_row, lint, record

PAGES = Path(__file__).parents[2] / "docs" / "support-matrix" / "rules"
BLOCK = re.compile(r'```(?:yaml|json) title="(?P<name>[^"]+)"\n(?P<content>.*?)```', re.DOTALL)
REPORTED = re.compile(r"```text\n(.*?)```", re.DOTALL)

WITHOUT_EXAMPLE = {"TM001", "TM051", "TM052"}
"""Rules whose failing input no code block can hold; they have tests of their own below."""

CODES = sorted(RULES.keys() - WITHOUT_EXAMPLE)


def findings_with(
    directory: Path, code: str, section: str, monkeypatch: pytest.MonkeyPatch
) -> tuple[list[str], str]:
    """Returns the findings of the example under a heading, and that section's text."""
    text = (PAGES / f"{code}.md").read_text().partition(f"## {section}\n")[2].partition("\n## ")[0]
    block = BLOCK.search(text)
    assert block is not None, f"{code} has no example under {section}"
    root = copy_example(directory)
    (root / block["name"]).write_text(block["content"])
    monkeypatch.chdir(directory)
    committed = read_file(root / "evidence-snapshot.jsonl")
    return [str(finding) for finding in sorted([*lint(root), *committed.findings])], text


@pytest.mark.parametrize("code", CODES)
def test_the_failing_example_gives_exactly_what_the_page_says(code, tmp_path, monkeypatch):
    found, text = findings_with(tmp_path, code, "Reported", monkeypatch)
    reported = REPORTED.search(text)
    assert reported is not None
    assert found == reported[1].splitlines()
    assert found
    assert all(f" {code} " in line for line in found)


@pytest.mark.parametrize("code", CODES)
def test_the_passing_example_has_no_finding(code, tmp_path, monkeypatch):
    found, _ = findings_with(tmp_path, code, "Accepted", monkeypatch)
    assert found == []


@pytest.mark.parametrize("code", sorted(RULES))
def test_every_rule_has_a_page_with_its_title(code):
    assert (PAGES / f"{code}.md").read_text().startswith(f"# {code}: {RULES[code].title}\n")


def test_no_page_is_about_a_code_that_does_not_exist():
    assert {path.stem for path in PAGES.glob("TM*.md")} == set(RULES)


@pytest.mark.parametrize("name", ["tiers.yaml", "hardware.yaml", "features.yaml"])
def test_a_missing_file_is_one_finding_that_hides_no_other(name, tmp_path):
    root = copy_example(tmp_path)
    (root / name).unlink()
    family = root / "models" / "llama.yaml"
    family.write_text(family.read_text().replace("at_least: 0.5", "at_least: 0"))
    assert sorted(finding.code for finding in lint(root)) == ["TM001", "TM031"]


def test_a_matrix_without_family_files_is_a_finding(tmp_path):
    root = copy_example(tmp_path)
    (root / "models" / "llama.yaml").unlink()
    assert [finding.code for finding in lint(root)] == ["TM001"]


def test_a_file_that_is_not_utf8_is_reported_with_its_line(tmp_path):
    root = copy_example(tmp_path)
    path = root / "tiers.yaml"
    path.write_bytes(path.read_bytes() + b"# caf\xe9\n")
    [finding] = lint(root)
    assert (finding.code, finding.location.line) == ("TM001", 6)


def test_a_directory_in_place_of_a_file_is_a_finding(tmp_path):
    root = copy_example(tmp_path)
    (root / "tiers.yaml").unlink()
    (root / "tiers.yaml").mkdir()
    assert [finding.code for finding in lint(root)] == ["TM001"]


def test_committed_evidence_needs_its_row_or_a_tombstone(tmp_path):
    root = copy_example(tmp_path)
    row = example_row()
    known = record(row)
    gone = record(row, row_id=row.id.replace("tiny:", "tinny:"))
    assert lint(root, committed=(known,)) == []
    [finding] = lint(root, committed=(known, gone))
    assert finding.code == "TM051"
    family = root / "models" / "llama.yaml"
    stone = "removed:\n  - {id: tinny, date: 2026-11-01, reason: Renamed., replacement: tiny}\n"
    family.write_text(family.read_text() + stone)
    assert lint(root, committed=(known, gone)) == []


def test_committed_evidence_from_the_future_is_a_finding(tmp_path):
    root = copy_example(tmp_path)
    late = record(example_row(), finished=(NOW + dt.timedelta(days=1)).isoformat())
    assert [finding.code for finding in lint(root, committed=(late,))] == ["TM052"]
    matrix = load(root).matrix
    assert list(run_rules(Context(matrix, NOW + dt.timedelta(days=2), (late,)))) == []
