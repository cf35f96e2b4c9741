"""From files to claims: one broken part hides nothing else."""

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tpu_matrix.errors import MatrixError
from tpu_matrix.matrix.load import find_root, load

from tests.tools.factory import EXAMPLE, copy_example, lint


def edit(root, old, new, name="models/llama.yaml"):
    path = root / name
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new))


def test_the_example_matrix_has_no_finding():
    assert lint(EXAMPLE) == []


def test_a_broken_row_leaves_its_neighbour_readable(tmp_path):
    root = copy_example(tmp_path)
    edit(root, "tier: nightly", "tier: often")
    loaded = load(root)
    assert [row.slug for row in loaded.matrix.rows()] == ["tiny-recipe"]
    assert [finding.code for finding in loaded.findings] == ["TM006"]


def test_mistakes_in_several_files_come_at_once(tmp_path):
    root = copy_example(tmp_path)
    edit(root, "cores: 8, chips: 4", "cores: 8, chips: 8", "hardware.yaml")
    edit(root, "at_least: 0.5", "at_least: 0")
    edit(root, "fresh_for_days: 90", "fresh_for_days: 0", "tiers.yaml")
    assert {finding.code for finding in lint(root)} == {"TM022", "TM031", "TM006"}


def test_rows_take_what_they_leave_out_from_the_defaults(tmp_path):
    root = copy_example(tmp_path)
    edit(root, "rows:", "defaults: {max_model_len: 4096, kv_cache_dtype: bfloat16}\nrows:")
    rows = load(root).matrix.by_slug
    assert (rows["tiny"].item.max_model_len, rows["tiny-recipe"].item.max_model_len) == (1024, 4096)
    assert rows["tiny"].item.kv_cache_dtype == "bfloat16"


def test_a_mistake_in_the_defaults_is_reported_once_at_its_place(tmp_path):
    root = copy_example(tmp_path)
    edit(root, "rows:", "defaults: {max_model_len: many}\nrows:")
    [finding] = load(root).findings
    assert (finding.code, finding.location.line, finding.location.column) == ("TM006", 9, 27)


@pytest.mark.parametrize(
    "content", ["[]", "3", "rows: 3", "rows: [3]", "models: []", "family: [a]"]
)
def test_a_file_of_another_shape_is_findings_and_no_traceback(content, tmp_path):
    root = copy_example(tmp_path)
    (root / "models" / "llama.yaml").write_text(content)
    assert lint(root)


@given(
    st.recursive(
        st.none()
        | st.booleans()
        | st.integers(0, 9)
        | st.sampled_from(["tiny", "v7x-2", "nightly", "", "a b"]),
        lambda inner: (
            st.lists(inner, max_size=3)
            | st.dictionaries(
                st.sampled_from(
                    ["id", "rows", "models", "defaults", "family", "title", "checks", "tier", "x"]
                ),
                inner,
                max_size=4,
            )
        ),
        max_leaves=12,
    )
)
@settings(suppress_health_check=[HealthCheck.too_slow], max_examples=60, deadline=None)
def test_any_shape_of_family_file_is_answered_with_findings(tmp_path_factory, data):
    import json

    root = copy_example(tmp_path_factory.mktemp("shape"))
    # JSON is YAML; every such file lacks something that a family needs.
    (root / "models" / "llama.yaml").write_text(json.dumps(data))
    assert load(root).findings


def test_the_nearest_matrix_upwards_is_found(tmp_path):
    root = copy_example(tmp_path)
    below = tmp_path / "a" / "b"
    below.mkdir(parents=True)
    assert find_root(None, below) == root
    assert find_root(None, root / "models") == root


def test_no_matrix_is_one_sentence(tmp_path):
    with pytest.raises(
        MatrixError, match=r"there is no support_matrix/ here or in a directory above; .*--matrix"
    ):
        find_root(None, tmp_path)
    with pytest.raises(MatrixError, match="is not a directory"):
        find_root(tmp_path / "missing")


def test_a_mistake_that_a_row_inherits_is_reported_once_where_it_is_written(tmp_path):
    root = copy_example(tmp_path)
    edit(root, "rows:", "defaults: {features: [prefix-cashing]}\nrows:")
    [finding] = lint(root)
    assert (finding.code, finding.location.line, finding.location.column) == ("TM011", 9, 23)


def test_a_family_whose_head_is_broken_does_not_blame_its_rows(tmp_path):
    root = copy_example(tmp_path)
    edit(root, "title: Llama\n", "")
    assert [finding.code for finding in lint(root)] == ["TM007"]
