from pathlib import Path

import pytest

from antiphon.tools.source import digest_of, parse_json, read
from tests.fakes.toolbox import write_tool


def test_a_directory_is_read_with_its_subdirectories(tmp_path: Path) -> None:
    source = read(write_tool(tmp_path, files={"data/cities.txt": "Paris\n"}))
    assert list(source.files) == ["data/cities.txt", "doc.md", "doc_summary.md", "handler.py", "schema.json"]


def test_tests_caches_and_hidden_files_are_left_out(tmp_path: Path) -> None:
    before = read(write_tool(tmp_path))
    after = read(
        write_tool(
            tmp_path,
            files={
                "tests/test_greet.py": "x",
                "__pycache__/handler.pyc": "x",
                "sub/__pycache__/a.pyc": "x",
                "old.pyc": "x",
                ".DS_Store": "x",
                ".cache/x": "x",
            },
        )
    )
    assert after == before


def test_a_folder_called_tests_further_down_counts(tmp_path: Path) -> None:
    assert "data/tests/a.txt" in read(write_tool(tmp_path, files={"data/tests/a.txt": "x"})).files


def test_the_folder_and_the_spelling_of_its_name_do_not_matter(tmp_path: Path) -> None:
    one = read(write_tool(tmp_path / "here", "kb_search"))
    other = read(write_tool(tmp_path / "there", "kb_search", directory="kb-search"))
    assert (one.tool_id, one.digest) == (other.tool_id, other.digest)


@pytest.mark.parametrize(
    ("name", "old", "new"),
    [
        ("doc.md", b"Greets", b"greets"),
        ("handler.py", b"Hello", b"Hallo"),
        ("schema.json", b"1.0.0", b"1.0.1"),
        ("data.bin", b"\x00\x01", b"\x00\x02"),
    ],
)
def test_a_changed_byte_changes_the_digest(tmp_path: Path, name: str, old: bytes, new: bytes) -> None:
    directory = write_tool(tmp_path, files={"data.bin": b"\x00\x01"})
    before = read(directory).digest
    content = (directory / name).read_bytes()
    (directory / name).write_bytes(content.replace(old, new, 1))
    assert read(directory).digest != before


def test_a_renamed_file_changes_the_digest(tmp_path: Path) -> None:
    directory = write_tool(tmp_path, files={"a.txt": "x"})
    before = read(directory).digest
    (directory / "a.txt").rename(directory / "b.txt")
    assert read(directory).digest != before


def digest_with(root: Path, name: str, content: str | bytes) -> str:
    return read(write_tool(root, files={name: content})).digest


def test_the_order_of_keys_and_the_layout_of_json_do_not_matter(tmp_path: Path) -> None:
    one = digest_with(tmp_path, "data.json", '{"a": {"x": 1, "y": [2]}, "b": 3}')
    assert digest_with(tmp_path, "data.json", '{"b":3,\n  "a":{"y":[2],"x":1}}') == one


def test_in_json_one_and_one_point_zero_differ(tmp_path: Path) -> None:
    assert digest_with(tmp_path, "data.json", "[1]") != digest_with(tmp_path, "data.json", "[1.0]")


def test_large_numbers_in_json_keep_every_digit(tmp_path: Path) -> None:
    one = digest_with(tmp_path, "data.json", "[123456789012345678901234567890]")
    assert digest_with(tmp_path, "data.json", "[123456789012345678901234567891]") != one


def test_invalid_json_is_hashed_as_bytes(tmp_path: Path) -> None:
    one = digest_with(tmp_path, "data.json", '{"a": 1, "a": 2}')
    assert digest_with(tmp_path, "data.json", '{"a": 3, "a": 2}') != one


def test_line_ends_of_text_do_not_matter(tmp_path: Path) -> None:
    assert digest_with(tmp_path, "notes.txt", "a\r\nb\r\n") == digest_with(tmp_path, "notes.txt", "a\nb\n")


def test_line_ends_in_binary_files_matter(tmp_path: Path) -> None:
    assert digest_with(tmp_path, "data.bin", b"\x00\r\n") != digest_with(tmp_path, "data.bin", b"\x00\n")


def test_file_boundaries_affect_the_digest() -> None:
    assert digest_of([("a", b"bc"), ("d", b"")]) != digest_of([("a", b"b"), ("cd", b"")])
    assert digest_of([("a", b"1:b")]) != digest_of([("a", b""), ("b", b"")])


def test_text_is_returned_without_a_byte_order_mark(tmp_path: Path) -> None:
    assert read(write_tool(tmp_path, files={"doc.md": b"\xef\xbb\xbf# greet"})).text("doc.md") == "# greet"


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b'{"a": 1, "b": {"c": 1, "c": 2}}', '"c" appears twice'),
        (b"[NaN]", "NaN is not a valid JSON number"),
        (b"[1e999]", "1e999 is not a valid JSON number"),
        (rb'["\ud800"]', "surrogate"),
        (b"[" * 100_000, "nested too deeply"),
        (b"{,}", "Expecting property name"),
        (b"\xff", "codec can't decode"),
    ],
)
def test_json_is_read_strictly(content: bytes, reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
        parse_json(content)
