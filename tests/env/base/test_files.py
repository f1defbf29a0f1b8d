"""What a file of others can do to a machine: nothing."""

import errno
import gzip
import os
import socket
from pathlib import Path

import pytest

from env.base.errors import InputError
from env.base.files import (
    folder_written_whole,
    opened,
    parse_json,
    read_bytes,
    read_yaml,
    table_row,
    written_whole,
)


def test_a_file_is_read_whole_packed_or_not(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"words" * 10_000)
    (tmp_path / "a.gz").write_bytes(gzip.compress(b"words" * 10_000))
    assert read_bytes(tmp_path / "a") == read_bytes(tmp_path / "a.gz") == b"words" * 10_000
    assert read_bytes(tmp_path / "a", most=50_000) == b"words" * 10_000
    for content in (gzip.compress(b"words" * 10_000)[:-20], b"words"):
        (tmp_path / "a.gz").write_bytes(content)
        with pytest.raises(InputError, match=r"a\.gz: broken or truncated"):
            read_bytes(tmp_path / "a.gz")


@pytest.mark.parametrize("name", ["a", "a.gz"])
def test_more_bytes_than_allowed_are_refused(tmp_path: Path, name: str) -> None:
    content = b"0" * 3_000_000
    (tmp_path / name).write_bytes(gzip.compress(content) if name == "a.gz" else content)
    with pytest.raises(InputError, match=r"more than 2,999,999 bytes"):
        read_bytes(tmp_path / name, most=2_999_999)
    with opened(tmp_path / name, most=10) as file, pytest.raises(InputError, match="more than 10"):
        file.read()


def test_only_regular_files_are_read(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "fifo")
    (tmp_path / "zero").symlink_to("/dev/zero")
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(tmp_path / "socket"))
        for name in ("fifo", "zero", "socket", "."):
            with pytest.raises(InputError, match="not a regular file"):
                read_bytes(tmp_path / name)
    with pytest.raises(InputError, match="no such file"):
        read_bytes(tmp_path / "absent")


def test_links_that_lead_out_are_not_followed(tmp_path: Path) -> None:
    folder = tmp_path / "shared"
    folder.mkdir()
    (tmp_path / "secret").write_text("s")
    (folder / "own").write_text("o")
    (folder / "out").symlink_to(tmp_path / "secret")
    (folder / "in").symlink_to(folder / "own")
    assert read_bytes(folder / "in", inside=folder) == b"o"
    assert read_bytes(folder / "out") == b"s"
    with pytest.raises(InputError, match="a link that leads out"):
        read_bytes(folder / "out", inside=folder)
    (folder / "circle").symlink_to("circle")
    for inside in (folder, None):
        with pytest.raises(InputError, match="circle: cannot be read: Too many levels"):
            read_bytes(folder / "circle", inside=inside)


def test_a_name_is_shown_as_a_terminal_may_have_it(tmp_path: Path) -> None:
    for name in ("\x1b[2J", "x" * 5_000, "/".join(["x" * 200] * 15)):
        with pytest.raises(InputError) as caught:
            read_bytes(tmp_path / name)
        assert str(caught.value).isprintable() and len(str(caught.value)) < 1_100


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ('{"a": 1, "a": 2}', "key 'a' is given twice"),
        ("[" + "1" * 5_000 + "]", "5000 digits"),
        ("[" * 100_000, "recursion"),
        ("{", "Expecting property name"),
    ],
)
def test_json_of_others(text: str, words: str) -> None:
    with pytest.raises(InputError, match=words) as caught:
        parse_json(text.encode(), "x.json")
    assert len(str(caught.value)) < 200
    assert str(caught.value).startswith("x.json: not valid JSON: ")


def test_json_of_too_many_values() -> None:
    with pytest.raises(InputError, match=r"^x\.json: more than 5,000,000 values, too many$"):
        parse_json(b'[{"a":' * 2_000_000, "x.json")


def test_json_as_it_is() -> None:
    assert parse_json(b'\xef\xbb\xbf{"a": [1, 2.5, null]}', "x") == {"a": [1, 2.5, None]}
    with pytest.raises(InputError, match="can't decode byte 0xff"):
        parse_json(b"\xff", "x")


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (b"a: [", "not YAML"),
        (b"a: 1\nb: {c: 1, c: 2}", "'c' is given twice"),
        (b"[" * 10_000, "not YAML"),
        (b"a: \xe9", "can't decode byte 0xe9"),
    ],
)
def test_yaml_that_is_none(content: bytes, says: str, tmp_path: Path) -> None:
    (tmp_path / "x.yaml").write_bytes(content)
    with pytest.raises(InputError, match=says) as caught:
        read_yaml(tmp_path / "x.yaml", "x.yaml")
    assert str(caught.value).startswith("x.yaml: ") and len(str(caught.value)) < 1_100


def test_no_text_in_a_table_is_a_formula_or_obeyed_by_a_terminal() -> None:
    cells = ["=1+1", "+1", "-1", "@a", "\ta", "a=1", -1.5, None, "a\x1b[31mb", "a b", "\u00e9"]
    shown = ["'=1+1", "'+1", "'-1", "'@a", r"'\ta", "a=1", -1.5, None, r"a\x1b[31mb", "a b"]
    assert table_row(cells) == [*shown, "\u00e9"]


def test_what_fails_while_it_is_written_leaves_what_was_there(tmp_path: Path) -> None:
    file, folder = tmp_path / "file", tmp_path / "folder"
    file.write_text("before")
    folder.mkdir()
    with pytest.raises(InputError, match="cannot be written: No space"), written_whole(file) as new:
        new.write_text("half")
        raise OSError(errno.ENOSPC, "No space left on device")
    with pytest.raises(ArithmeticError), folder_written_whole(folder) as new:
        new.mkdir()
        raise ArithmeticError
    assert {path.name for path in tmp_path.iterdir()} == {"file", "folder"}
    assert file.read_text() == "before"
