"""YAML in, data with positions out, and never a traceback."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tpu_matrix.matrix.document import parse


def parsed(path, content):
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return parse(path)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("8", 8),
        ("-3", -3),
        ("0.5", 0.5),
        ("1e-3", 0.001),
        ("true", True),
        ("null", None),
        ("yes", "yes"),
        ("on", "on"),
        ("1:30", "1:30"),
        ("0x10", "0x10"),
        ("2026-11-30", "2026-11-30"),
        ('"8"', "8"),
        ("1.2.3", "1.2.3"),
        (".nan", ".nan"),
        ("1e999", "1e999"),
    ],
)
def test_plain_values_follow_the_core_schema_and_no_older_surprise(text, value, tmp_path):
    document, findings = parsed(tmp_path / "a.yaml", f"key: {text}\n")
    assert findings == []
    assert document is not None
    assert document.data == {"key": value}


def test_positions_point_at_values_and_keys(tmp_path):
    document, _ = parsed(tmp_path / "a.yaml", "a:\n  - b: 1\n    c: {d: 2}\n")
    assert document is not None
    value, key = (
        document.locate(("a", 0, "c", "d")),
        document.locate(("a", 0, "c", "d"), of_key=True),
    )
    assert (value.line, value.column, key.line, key.column) == (3, 12, 3, 9)


def test_a_path_that_does_not_exist_falls_back_to_its_parent(tmp_path):
    document, _ = parsed(tmp_path / "a.yaml", "a:\n  b: 1\n")
    assert document is not None
    assert document.locate(("a", "missing", 3)).line == 2


def test_all_duplicate_keys_of_a_file_are_found_at_once(tmp_path):
    _, findings = parsed(tmp_path / "a.yaml", "a: 1\na: 2\nb: {c: 1, c: 2}\n")
    assert [(f.code, f.location.line) for f in findings] == [("TM003", 2), ("TM003", 3)]


def test_an_alias_bomb_is_refused_without_being_expanded(tmp_path):
    levels = [f"a{i}: &a{i} [{', '.join([f'*a{i - 1}'] * 10)}]" for i in range(1, 30)]
    document, findings = parsed(tmp_path / "a.yaml", "\n".join(["a0: &a0 [x]", *levels]))
    assert document is not None
    assert {finding.code for finding in findings} == {"TM004"}


def test_a_file_that_refers_to_itself_is_refused(tmp_path):
    _, findings = parsed(tmp_path / "a.yaml", "&a\nb: *a\n")
    assert [finding.code for finding in findings] == ["TM004"]


@pytest.mark.parametrize("opening", ["[", "{a: ", "- "])
def test_nesting_without_end_is_a_finding(opening, tmp_path):
    document, findings = parsed(tmp_path / "a.yaml", opening * 20_000)
    assert document is None
    assert [finding.code for finding in findings] == ["TM002"]


def test_nothing_but_comments_is_a_finding(tmp_path):
    document, findings = parsed(tmp_path / "a.yaml", "# nothing\n")
    assert (document, [finding.code for finding in findings]) == (None, ["TM002"])


def test_two_documents_in_one_file_are_a_finding(tmp_path):
    _, findings = parsed(tmp_path / "a.yaml", "a: 1\n---\nb: 2\n")
    assert [finding.code for finding in findings] == ["TM002"]


YAML_PIECES = st.lists(
    st.sampled_from(
        [
            "a",
            "b: ",
            "- ",
            "\n",
            "  ",
            "[",
            "]",
            "{",
            "}",
            "*x",
            "&x ",
            "!!t ",
            '"',
            "'",
            "|",
            ": ",
            "#",
            "<<",
        ]
    )
).map("".join)


@settings(deadline=None)
@given(
    st.one_of(
        st.binary(max_size=200), YAML_PIECES.map(str.encode), st.text(max_size=100).map(str.encode)
    )
)
def test_any_bytes_give_a_document_or_a_finding(tmp_path_factory, content):
    document, findings = parsed(tmp_path_factory.mktemp("fuzz") / "a.yaml", content)
    assert document is not None or findings


def test_a_byte_order_mark_is_no_part_of_the_first_key(tmp_path):
    document, findings = parsed(tmp_path / "a.yaml", b"\xef\xbb\xbfkey: 1\n")
    assert findings == []
    assert document is not None
    assert document.data == {"key": 1}


@pytest.mark.parametrize(
    "text", ["a: \x00\n", "a: \x07\n", "a: b: c\n", "\ta: 1\n", "a: 'x\n", "- a\nb: 1\n"]
)
def test_what_is_not_yaml_is_one_finding(text, tmp_path):
    document, findings = parsed(tmp_path / "a.yaml", text)
    assert document is None
    assert [finding.code for finding in findings] == ["TM002"]
