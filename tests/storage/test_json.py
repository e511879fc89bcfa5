"""JSON, TOML and files as such, of others: a value or one typed error, whatever they hold."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from spmrl_bench.errors import RecordError
from spmrl_bench.storage.files import read_regular
from spmrl_bench.storage.json import parse_json, read_json
from spmrl_bench.storage.toml import read_toml
from tests.reliability.tally import Tally

GOOD = [
    b"{}",
    b"\xef\xbb\xbf[1]",
    b'{"a": [1, 2.5, null, true], "b": {"c": "\\u00e4\\ud83d\\ude00"}}',
    b'"\\\\ud800"',
    b"9223372036854775807",
    b"1.1234567890123456789012",
    b'"12345678901234567890123"',
    b"[" * 100 + b"]" * 100,
    b'{"\\"a\\":": "\\u0022:", "b" : {"a": 1e99}}',
]


@pytest.mark.parametrize("data", GOOD)
def test_values(data: bytes, tmp_path: Path) -> None:
    assert parse_json(data) == json.loads(data)
    (tmp_path / "x.json").write_bytes(data)
    assert read_json(tmp_path / "x.json", RecordError) == json.loads(data)


BAD = {
    b"[" * 100_000 + b"]" * 100_000: "recursion limit",
    b'{"a":' * 500 + b"1" + b"}" * 500: "recursion limit",
    b"[" * (1 << 22) + b"[": "more lists and objects",
    b"[NaN]": "expected value",
    b"[-Infinity]": "invalid number",
    b"[1e999]": "the number 1e999, which is too large",
    b"1" + b"0" * 400 + b".5": "which is too large",
    b"9223372036854775808": "a whole number beyond",
    b"-1" + b"0" * 40: "a whole number beyond",
    b"1" * 10_000: "number out of range",
    b'"\\ud800"': "unexpected end of hex escape",
    b'{"\\uDFFF": 1}': "lone leading surrogate in hex escape",
    b'"\xed\xa0\x80"': "invalid unicode code point",
    b"\xff\xfe1\x00": "expected value",
    b'{"a": 1, "a": 2}': "the key 'a' twice",
    b'{"a": 1, "b": {"a": 1, "c": 2, "a" : "\\u0022:"}}': "the key 'a' twice",
    b'{"a": 1, "a": "\\"\\u003a"}': "the key 'a' twice",
    b'{"a": 1, "\\u0061": 2}': "the key 'a' twice",
    b"[1,": "EOF while parsing a value at line 1 column 3",
    b"": "EOF while parsing a value at line 1 column 0",
}


BAD_TOML = {
    b"a = " + b"[" * 20_000 + b"]" * 20_000: "deep inside each other",
    b"a = " + b"{b = " * 20_000 + b"1" + b"}" * 20_000: "deep inside each other",
    b".".join([b"a"] * 20_000) + b" = 1": "a key of more than",
    b" . ".join([b"'a b'"] * 20_000) + b" = 1": "a key of more than",
    b"[" + b".".join([b'"a"'] * 20_000) + b"]": "a key of more than",
    b"a = 1" + b"0" * 40: "a whole number beyond",
    b"a = 1" + b"0" * 10_000: "not valid TOML",
    b"a = nan": "not finite",
    b"a = [{b = -inf}]": "not finite",
    b"a = 1e999": "not finite",
    b"a = '\xff'": "codec can't decode",
    b"name = \n": "not valid TOML: Invalid value (at line 1, column 8)",
    b"a = 1\na = 2\n": "not valid TOML: Cannot overwrite a value (at line 2",
    b"#" * (5 << 20): "more than",
}


@pytest.mark.parametrize(
    ("read", "data", "message"),
    [
        *((read_json, *mistake) for mistake in BAD.items()),
        *((read_toml, *mistake) for mistake in BAD_TOML.items()),
    ],
)
def test_what_is_no_json_or_toml(
    read: Callable[..., Any], data: bytes, message: str, tmp_path: Path, tally: Tally
) -> None:
    tally("R17", "hostile files of JSON and TOML").add()
    path = tmp_path / "x"
    path.write_bytes(data)
    with pytest.raises(RecordError) as caught:
        read(path, RecordError)
    assert str(caught.value).startswith(str(path))
    assert message in str(caught.value)
    assert len(str(caught.value)) < 500 + len(str(path))


def test_wide_numbers_of_other_programs() -> None:
    assert parse_json(b"1000000000000000019884624838656", wide=True) == int(1e30)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (os.mkfifo, "a named pipe, expected a file"),
        (lambda path: path.symlink_to("/dev/zero"), "a device, expected a file"),
        (lambda path: path.symlink_to("gone"), "No such file or directory"),
        (lambda path: path.symlink_to(path.name), "Too many levels of symbolic links"),
        (lambda path: path.mkdir(), "Is a directory"),
        (lambda path: path.touch(0) or os.truncate(path, 1 << 40), "more than"),
    ],
)
def test_what_is_no_file(make: Callable[[Path], Any], message: str, tmp_path: Path) -> None:
    path = tmp_path / "x"
    make(path)
    with pytest.raises(OSError, match=message):
        read_regular(path)
    for read in (read_json, read_toml):
        with pytest.raises(RecordError, match=f"{path}: cannot be read: .*{message}"):
            read(path, RecordError)
