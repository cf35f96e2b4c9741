"""The store only grows, under concurrent writers and crashes in mid-write."""

import multiprocessing
import os
import signal
from pathlib import Path

import pytest
from tpu_matrix.errors import MatrixError
from tpu_matrix.evidence.store import EvidenceStore, read_file

from tests.tools.factory import example_row, record

FILE = "2026-11.jsonl"


def numbered(number: int):
    return record(example_row(), attempt=number + 1)


def append_many(directory: Path, start: int, count: int) -> None:
    store = EvidenceStore(directory)
    for number in range(start, start + count):
        store.append(numbered(number))


def test_a_missing_directory_is_an_empty_store(tmp_path):
    assert EvidenceStore(tmp_path / "none").read().records == ()


def test_concurrent_writers_lose_and_double_nothing(tmp_path):
    context = multiprocessing.get_context("fork")
    # Every number is written by two processes.
    writers = [
        context.Process(target=append_many, args=(tmp_path, start, 30)) for start in (0, 15, 30, 0)
    ]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join()
    assert [writer.exitcode for writer in writers] == [0, 0, 0, 0]
    evidence = EvidenceStore(tmp_path).read()
    assert evidence.findings == ()
    assert sorted(stored.attempt for stored in evidence.records) == list(range(1, 61))


def test_a_writer_killed_at_any_moment_leaves_a_store_that_goes_on(tmp_path):
    context = multiprocessing.get_context("fork")
    writer = context.Process(target=append_many, args=(tmp_path, 0, 10_000))
    writer.start()
    while not (tmp_path / FILE).exists() or (tmp_path / FILE).stat().st_size < 2000:
        pass
    assert writer.pid is not None
    os.kill(writer.pid, signal.SIGKILL)
    writer.join()
    before = len(EvidenceStore(tmp_path).read().records)
    EvidenceStore(tmp_path).append(numbered(20_000))
    evidence = EvidenceStore(tmp_path).read()
    assert (len(evidence.records), evidence.findings) == (before + 1, ())


@pytest.mark.parametrize("kept_bytes", [1, 40, 400])
def test_a_line_cut_off_by_a_crash_is_kept_aside_and_the_rest_goes_on(kept_bytes, tmp_path):
    store = EvidenceStore(tmp_path)
    store.append(numbered(0))
    fragment = numbered(1).to_line()[:kept_bytes]
    with (tmp_path / FILE).open("ab") as file:
        file.write(fragment)
    [finding] = store.read().findings
    assert (finding.code, finding.location.line) == ("TM050", 2)
    assert "cut off" in finding.message
    store.append(numbered(2))
    evidence = store.read()
    assert [stored.attempt for stored in evidence.records] == [1, 3]
    assert evidence.findings == ()
    assert (tmp_path / f"{FILE}.truncated").read_bytes() == fragment + b"\n"


def test_a_line_that_lacks_only_its_newline_is_completed(tmp_path):
    store = EvidenceStore(tmp_path)
    store.append(numbered(0))
    path = tmp_path / FILE
    path.write_bytes(path.read_bytes().rstrip(b"\n"))
    assert len(store.read().records) == 1
    store.append(numbered(1))
    assert [stored.attempt for stored in store.read().records] == [1, 2]
    assert not (tmp_path / f"{FILE}.truncated").exists()


def test_a_file_that_holds_only_a_fragment_is_repaired(tmp_path):
    (tmp_path / FILE).write_bytes(b'{"id":"ab' * 20_000)
    EvidenceStore(tmp_path).append(numbered(0))
    assert len(EvidenceStore(tmp_path).read().records) == 1
    assert (tmp_path / f"{FILE}.truncated").stat().st_size == 9 * 20_000 + 1


def test_a_line_edited_by_hand_does_not_count(tmp_path):
    store = EvidenceStore(tmp_path)
    store.append(record(example_row(), producer="nightly"))
    path = tmp_path / FILE
    path.write_bytes(path.read_bytes().replace(b'"producer":"nightly"', b'"producer":"by hand"'))
    evidence = store.read()
    assert evidence.records == ()
    assert "edited by hand" in evidence.findings[0].message


@pytest.mark.parametrize("line", [b"nonsense", b"{}", b"\xff\xfe", b'{"id": 3}', b"[" * 5000])
def test_a_line_that_is_no_record_is_a_finding_and_hides_no_other(line, tmp_path):
    store = EvidenceStore(tmp_path)
    store.append(numbered(0))
    path = tmp_path / FILE
    path.write_bytes(line + b"\n" + path.read_bytes())
    evidence = store.read()
    assert [stored.attempt for stored in evidence.records] == [1]
    assert [(f.code, f.location.line) for f in evidence.findings] == [("TM050", 1)]


def test_a_failed_write_leaves_no_part_of_a_line(tmp_path, monkeypatch):
    store = EvidenceStore(tmp_path)
    store.append(numbered(0))
    real_write = os.write
    monkeypatch.setattr(os, "write", lambda descriptor, data: real_write(descriptor, data[:50]))
    with pytest.raises(MatrixError, match="the evidence cannot be written"):
        store.append(numbered(1))
    monkeypatch.undo()
    assert len(store.read().records) == 1
    assert store.read().findings == ()


def test_an_unwritable_place_is_one_sentence(tmp_path):
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(MatrixError, match=r"cannot be written .*; make the directory writable"):
        EvidenceStore(tmp_path / "file").append(numbered(0))


def test_runs_are_filed_by_the_month_they_started_in(tmp_path):
    store = EvidenceStore(tmp_path)
    store.append(numbered(0))
    store.append(record(example_row(), started="2026-10-31T23:59:59+00:00"))
    assert sorted(path.name for path in tmp_path.iterdir()) == ["2026-10.jsonl", FILE]
    assert len(read_file(tmp_path / FILE).records) == 1
