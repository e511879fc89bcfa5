"""Settings in few words: the same for the same settings, other ones for others."""

from __future__ import annotations

import itertools
import re

from spmrl_bench.scoring.settings_text import settings_folder, settings_text, variant_text

FULL = {"model.matrices": "full", "model.position": "added"}


def test_keys_are_sorted_and_lose_their_section() -> None:
    assert settings_text({"train.max_epochs": 2, "model.d_ff": 8}) == "d_ff=8,max_epochs=2"
    assert settings_folder({"train.max_epochs": 2, "model.d_ff": 8}) == "d_ff=8,max_epochs=2"
    assert variant_text("charlstm", FULL) == "charlstm (matrices=full, position=added)"
    assert variant_text("charlstm", {}) == "charlstm"


def test_a_key_of_two_sections_keeps_them() -> None:
    assert settings_text({"model.rate": 1, "train.rate": 2}) == "model.rate=1,train.rate=2"


def test_values_are_shown_as_in_toml_and_keep_no_mark_of_a_signature() -> None:
    for value, text, folder in [
        ("full", "k=full", "k=full"),
        (True, "k=true", "k=true"),
        (0.0008, "k=0.0008", "k=0.0008"),
        (1e-9, "k=1e-09", "k=1e-09"),
        ([0, 1, 2], "k=[0,1,2]", "k=0+1+2"),
        ([], "k=[]", "k=none"),
        ("~/vectors/en.txt", "k=~/vectors/en.txt", None),
        ("two words", 'k="two words"', None),
        ("a|b:c%d`e", 'k="a%7Cb%3Ac%25d%60e"', None),
        ("a\nb", 'k="a\\nb"', None),
        ("ü", "k=ü", None),
    ]:
        assert settings_text({"model.k": value}) == text
        assert not set(text) & set("|:\n`")
        found = settings_folder({"model.k": value})
        assert re.fullmatch(r"[A-Za-z0-9._+=,-]+", found)
        if folder is None:
            assert re.search("_[0-9a-f]{8}$", found)
        else:
            assert found == folder


def test_other_settings_have_other_folders() -> None:
    values = ["a/b", "a_b", "a b", "a|b", "x" * 200, "x" * 201, True, 1, [1], 1.5]
    folders = [settings_folder({"model.k": value}) for value in values[:-3]]
    for one, other in itertools.combinations(folders, 2):
        assert one != other
    assert max(map(len, folders)) <= 80
