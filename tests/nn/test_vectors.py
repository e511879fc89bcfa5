"""Static vectors as an input: which row a form has, and what of it is learned."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch

from spmrl_bench.errors import PretrainedError
from spmrl_bench.nn.inputs import Boundary, Codes
from spmrl_bench.nn.vectors import StaticVectors
from tests.nn.plain import layout_of

WORDS = ["haus", "Haus", "im", "strasse"]
MATRIX = np.array([[1, 2, 3], [4, 5, 6], [7, 8, 9], [-1, 0, 1]], dtype=np.float32)
FORMS = [Boundary.START, "Haus", "IM", "nirgends", "HAUS", Boundary.STOP]


def codes_of(module: StaticVectors, forms: list[str | Boundary], rows: list[int]) -> Codes:
    values = np.array([module.codes(form) for form in forms])
    lengths = torch.ones(len(forms), dtype=torch.int64)
    return Codes(torch.from_numpy(values), lengths, torch.tensor(rows))


@pytest.fixture
def module() -> StaticVectors:
    torch.manual_seed(0)
    return StaticVectors(WORDS, MATRIX, 8, 0.2).eval()


def test_a_form_has_its_row_or_that_of_its_lower_case(module: StaticVectors) -> None:
    matrix = module.linear.weight.detach().numpy()
    found = module(codes_of(module, FORMS, list(range(6))), layout_of([6])).detach().numpy()
    np.testing.assert_allclose(found[1], matrix @ MATRIX[1], rtol=1e-6)
    np.testing.assert_allclose(found[2], matrix @ MATRIX[2], rtol=1e-6)
    np.testing.assert_array_equal(found[3], np.zeros(8))
    np.testing.assert_allclose(found[4], matrix @ MATRIX[0], rtol=1e-6)


def test_the_first_word_is_found_too(module: StaticVectors) -> None:
    assert len({int(module.codes(form)[0]) for form in (*WORDS, *Boundary, "nirgends")}) == 7


def test_boundaries_have_vectors_of_their_own(module: StaticVectors) -> None:
    found = module(codes_of(module, FORMS, [0, 3, 5]), layout_of([3])).detach()
    assert torch.equal(found[0], module.boundaries.weight[0])
    assert torch.equal(found[2], module.boundaries.weight[1])
    assert not torch.equal(found[0], found[2])


def test_rows_hand_forms_out_to_tokens(module: StaticVectors) -> None:
    rows = [0, 1, 1, 5, 0, 2, 5]
    found = module(codes_of(module, FORMS, rows), layout_of([4, 3])).detach()
    each = module(codes_of(module, FORMS, list(range(6))), layout_of([6])).detach()
    assert torch.equal(found, each[rows])


def test_the_table_is_neither_trained_nor_saved(module: StaticVectors) -> None:
    names = ["boundaries.weight", "linear.weight"]
    assert sorted(name for name, _ in module.named_parameters()) == names
    assert sorted(module.state_dict()) == names
    module.train()
    module(codes_of(module, FORMS, list(range(6))), layout_of([6])).square().sum().backward()
    for parameter in module.parameters():
        assert parameter.grad is not None
        assert bool((parameter.grad != 0).any())
    assert module.table.grad is None
    assert module.double().table.dtype == torch.float64
    assert module.to("meta").table.device.type == "meta"


def test_dropout_is_shared_by_a_sentence() -> None:
    torch.manual_seed(1)
    module = StaticVectors(WORDS, MATRIX, 300, 0.4).train()
    codes = codes_of(module, ["im"], [0] * 6)
    absent = module(codes, layout_of([3, 3])) == 0
    for sentence in absent.split(3):
        assert torch.equal(sentence, sentence[:1].expand_as(sentence))
    assert not torch.equal(absent[0], absent[3])
    assert absent.float().mean().item() == pytest.approx(0.4, abs=0.1)


def test_vectors_come_from_a_file(tmp_path: Path) -> None:
    path = tmp_path / "vectors.txt"
    path.write_text("haus 1 2 3\nim 7 8 9\nhaus 0 0 0\n", encoding="utf-8")
    module = StaticVectors.read(path, 8, 0.2)
    assert module.table.tolist() == [[1, 2, 3], [7, 8, 9]]
    assert module.codes("IM").tolist() == module.codes("im").tolist()
    with pytest.raises(PretrainedError, match=r"absent\.txt"):
        StaticVectors.read(tmp_path / "absent.txt", 8, 0.2)


def test_words_and_rows_go_together() -> None:
    with pytest.raises(ValueError, match="3 different words, but 4 rows"):
        StaticVectors(["a", "b", "b", "c"], MATRIX, 8, 0.2)
