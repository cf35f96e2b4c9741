"""Pages: deterministic, complete, and unable to be broken by what they show."""

import datetime as dt
import re

import pytest
from tpu_matrix.matrix.load import load
from tpu_matrix.render import output
from tpu_matrix.render.markdown import GENERATED, code, link, table, text
from tpu_matrix.render.pages import MISSING_COMBINATION, anchor, render_pages

from tests.tools.factory import NOW, copy_example, example_matrix, example_row, record

CELL_BORDER = re.compile(r"(?<!\\)\|")


def page(*records, matrix=None, name="llama.md"):
    return render_pages(matrix or example_matrix(), records)[name]


def tables(markdown):
    lines = markdown.splitlines()
    starts = [i for i, line in enumerate(lines) if line.startswith("| ---")]
    for start in starts:
        end = start
        while end + 1 < len(lines) and lines[end + 1].startswith("|"):
            end += 1
        yield lines[start - 1 : end + 1], lines[: start - 1]


def test_the_same_claims_and_evidence_give_the_same_bytes():
    first, second = record(example_row()), record(example_row(), "virtual")
    assert render_pages(example_matrix(), [first, second]) == render_pages(
        example_matrix(), [second, first]
    )


def test_every_row_of_every_table_has_as_many_cells_as_its_header():
    for name, markdown in render_pages(example_matrix(), [record(example_row())]).items():
        for lines, _ in tables(markdown):
            assert len({len(CELL_BORDER.findall(line)) for line in lines}) == 1, name


def test_the_words_about_missing_combinations_stand_above_every_table_of_claims():

    assert MISSING_COMBINATION in page(name="index.md")
    for lines, above in tables(page()):
        assert any(MISSING_COMBINATION in line for line in above), lines[0]


def test_a_page_of_all_claims_without_evidence_passes_nothing():
    markdown = page()
    assert "No evidence is committed yet, so nothing here has passed." in markdown
    assert "**pass**" not in markdown


def test_a_virtual_pass_stands_in_its_own_column_and_leaves_the_hardware_cell_alone():
    markdown = page(record(example_row(), "virtual"))
    [line] = [
        line for line in markdown.splitlines() if line.startswith("| [Tiny]") and "v7x-2" in line
    ]
    cells = [cell.strip() for cell in CELL_BORDER.split(line)][-4:-1]
    assert cells == [
        "[never-run](#row-tiny)",
        "[never-run](#row-tiny)",
        "[**pass**](#row-tiny)<br>2026-11-30",
    ]


def test_every_cell_with_a_run_leads_to_date_commit_versions_metric_threshold_and_log():
    markdown = page(record(example_row()))
    assert f'<a id="{anchor(example_row())}"></a>' in markdown
    [line] = [
        line for line in markdown.splitlines() if line.startswith("- On its hardware: **pass**")
    ]
    for part in (
        r"gsm8k.exact\_match 0.6",
        r"gsm8k.exact\_match at least 0.5",
        "2026-11-30",
        "`0123456789abcdef0123456789abcdef01234567`",
        "2 TPU7x devices",
        "vllm 0.33.0, torch 2.14.0, torch_tpu 0.2.0, jax 0.11.2, libtpu 0.0.52",
        "[log](https://example.org/log)",
    ):
        assert part in line


def test_statuses_are_those_of_the_newest_run_and_not_of_today():
    old = record(example_row(), started="2020-01-01T00:00:00Z", finished="2020-01-01T01:00:00Z")
    assert "**pass**" in page(old)
    assert "Statuses as of 2020-01-01 01:00 UTC" in page(old)
    later = record(example_row("tiny-recipe"), outcome="fail")
    assert "On its hardware: **stale**, pass on 2020-01-01, older than 3 days" in page(old, later)


def test_a_row_shows_its_exact_command():
    assert " ".join(example_row().argv) in page()


def test_display_name_tested_checkpoint_and_link_are_all_shown():
    assert "[Tiny](https://example.org/tiny)<br>`example/tiny`" in page()


def test_text_of_any_kind_stays_inside_its_cell(tmp_path):
    root = copy_example(tmp_path)
    path = root / "models" / "llama.yaml"
    evil = "name: 'A | B <script> *x* `y`'"
    path.write_text(path.read_text().replace("name: Tiny", evil))
    markdown = page(matrix=load(root).matrix)
    assert "<script>" not in markdown
    for lines, _ in tables(markdown):
        assert len({len(CELL_BORDER.findall(line)) for line in lines}) == 1


def test_a_removed_row_is_shown_with_its_reason_and_replacement(tmp_path):
    root = copy_example(tmp_path)
    path = root / "models" / "llama.yaml"
    stone = "removed:\n  - {id: old, date: 2026-11-01, reason: Gone., replacement: tiny}\n"
    path.write_text(path.read_text() + stone)
    assert "| `old` | 2026-11-01 | Gone. | `tiny` |" in page(matrix=load(root).matrix)


def test_quarantine_is_visible(tmp_path):
    root = copy_example(tmp_path)
    path = root / "models" / "llama.yaml"
    until = (NOW + dt.timedelta(days=3)).date()
    entry = f"    quarantine: {{owner: jane, issue: 'https://example.org/1', until: {until}, reason: A bad host.}}\n"
    path.write_text(path.read_text().replace("    tier: nightly\n", f"    tier: nightly\n{entry}"))
    assert f"**quarantined**, until {until} by jane: A bad host." in page(matrix=load(root).matrix)


def test_a_table_with_a_shifted_column_cannot_be_rendered():
    with pytest.raises(ValueError, match="a row of 1 columns under a header of 2"):
        table(["a", "b"], [["only one"]])


def test_markdown_parts_escape_what_would_break_them():
    assert text("a|b\n<c>") == "a\\|b \\<c\\>"
    assert code("a`b|c") == "`a'b\\|c`"
    assert link("x", "https://e.org/(a b)") == "[x](https://e.org/(a%20b%29)"


def test_output_is_written_once_and_drift_is_named(tmp_path):
    files = {tmp_path / "a" / "b.md": f"{GENERATED}\n"}
    assert output.write(files) == [tmp_path / "a" / "b.md"]
    assert output.write(files) == []
    assert output.drift(files) == []
    (tmp_path / "a" / "b.md").write_text("edited by hand")
    assert output.drift(files) == [
        (tmp_path / "a" / "b.md", "the file differs from what its data gives")
    ]
    assert output.drift({tmp_path / "c.md": ""}) == [
        (tmp_path / "c.md", "the generated file is missing")
    ]
    assert [path.name for path in (tmp_path / "a").iterdir()] == ["b.md"]
