"""Devices, and settings of the process: made where they help, by the program's own commands alone,
and never where they change a result."""

from __future__ import annotations

import ctypes
import os
import platform
from pathlib import Path

import pytest
import torch

from spmrl_bench.errors import RecipeError
from spmrl_bench.nn import device
from spmrl_bench.nn.device import choose_device, prepare_process
from tests.builders import cli_process, environment, tiny


def cards(monkeypatch: pytest.MonkeyPatch, number: int) -> None:
    monkeypatch.setattr("torch.cuda.is_available", lambda: number > 0)
    monkeypatch.setattr("torch.cuda.device_count", lambda: number)


def output_of(code: str, *arguments: object) -> str:
    """What a program prints in a process of its own, in which malloc is as it comes."""
    bounds = (*device.REMEMBERED, "DNNL_PRIMITIVE_CACHE_CAPACITY")
    plain = {
        name: value
        for name, value in environment().items()
        if not name.startswith(("MALLOC_", "GLIBC_")) and name not in bounds
    }
    done = cli_process(*arguments, code=code, env=plain)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_auto_takes_cuda_when_present(monkeypatch: pytest.MonkeyPatch) -> None:
    for number in (0, 2):
        cards(monkeypatch, number)
        assert choose_device("auto") == torch.device("cuda" if number else "cpu")
        assert choose_device("cpu") == torch.device("cpu")
    assert choose_device("cuda:1") == torch.device("cuda:1")


def test_other_names_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    cases = [
        (0, "gpu", r"unknown device 'gpu'. Allowed: auto, cpu, cuda, cuda:N"),
        (0, "", r"unknown device ''"),
        (0, "meta", r"unknown device 'meta'"),
        (0, "cuda:1", r"'cuda:1' asked for, but torch sees no CUDA device here"),
        (2, "cuda:99", r"'cuda:99' asked for, but torch sees cuda:0, cuda:1 here"),
    ]
    for number, name, message in cases:
        cards(monkeypatch, number)
        with pytest.raises(RecipeError, match=message):
            choose_device(name)


HOST = """
import ctypes, os, pathlib, sys
import torch
if sys.argv[2] == "newer":
    torch.backends.cuda.matmul.fp32_precision = "tf32"
before = dict(os.environ)
told = []
class Library(ctypes.CDLL):
    def __getattr__(self, name):
        told.append(name)
        return super().__getattr__(name)
ctypes.CDLL = Library
read_text = pathlib.Path.read_text
pathlib.Path.read_text = lambda path, *options, **more: (
    "vendor_id : AuthenticAMD" if str(path) == "/proc/cpuinfo"
    else read_text(path, *options, **more)
)
from spmrl_bench.parsing.models import load_parser
from spmrl_bench.nn.kernels import rounded_rows
assert (rounded_rows(1000, torch.float32), rounded_rows(1000, torch.bfloat16)) == (1000, 1024)
parser = load_parser(sys.argv[1], "cpu")
assert [len(parse.words) for parse in parser.parse([["the", "dog"], ["barks"] * 40])] == [2, 40]
assert dict(os.environ) == before, set(os.environ) - set(before)
assert "mallopt" not in told
if sys.argv[2] == "newer":
    assert torch.backends.cuda.matmul.fp32_precision == "tf32"
else:
    assert torch.get_float32_matmul_precision() == sys.argv[2]
    assert not torch.backends.cuda.matmul.allow_tf32
"""


@pytest.mark.parametrize("precision", ["highest", "newer"])
def test_a_program_that_parses_stays_as_it_was(tmp_path: Path, precision: str) -> None:
    """Whatever processor it seems to have, and with torch's newer way to set precision, too:
    each of the two raises an error once the other has been used."""
    if precision == "newer" and not hasattr(torch.backends.cuda.matmul, "fp32_precision"):
        pytest.skip("torch before 2.9 has one way to set the precision of products")
    tiny(max_positions=50).save(tmp_path)
    output_of(HOST, tmp_path, precision)


FAULTS = """
import resource
import torch
from spmrl_bench.nn.device import keep_memory
def work():
    for _ in range(10):
        torch.empty(12_000_000).fill_(1)
def faults():
    work()
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    work()
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before
print(faults(), keep_memory(), faults())
"""


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="malloc is not glibc's")
def test_kept_memory_is_not_cleared_again() -> None:
    returned, done, kept = output_of(FAULTS).split()
    assert done == "True"
    # Where pages are huge, the memory that was returned has 250 of them, else 100,000.
    assert int(kept) < 100 < int(returned)


def test_a_malloc_of_the_user_or_of_another_library_is_left_alone(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for name in ("MALLOC_TRIM_THRESHOLD_", "GLIBC_TUNABLES"):
        with monkeypatch.context() as patched:
            patched.setenv(name, "glibc.malloc.arena_max=1")
            patched.setattr(ctypes, "CDLL", None)
            assert not device.keep_memory()

    def unknown(_: str) -> str:
        raise ValueError("unrecognized configuration name")

    monkeypatch.setattr(os, "confstr", unknown)
    monkeypatch.delenv("GLIBC_TUNABLES", raising=False)
    assert not device.keep_memory()


def test_a_process_is_prepared_for_its_own_work(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where it has the environment of one that does other work."""
    monkeypatch.setattr(os, "environ", {"GLIBC_TUNABLES": ""})
    for training, sizes in ((False, device.REMEMBERED), (True, device.IN_TRAINING)) * 2:
        assert prepare_process("cpu", training=training) == torch.device("cpu")
        assert {name: int(os.environ[name]) for name in sizes} == sizes


def test_bounds_of_the_user_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    given = {"LRU_CACHE_CAPACITY": "7", "DNNL_PRIMITIVE_CACHE_CAPACITY": "8"}
    monkeypatch.setattr(os, "environ", dict(given))
    device.bound_caches(training=False)
    assert os.environ == given


def cpuinfo(folder: Path, vendor: str) -> Path:
    path = folder / "cpuinfo"
    path.write_text(f"processor\t: 0\nvendor_id\t: {vendor}\n", encoding="utf-8")
    return path


def test_products_go_to_onednn_only_where_they_are_as_exact(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # The precision before, the processor, the error under "medium", and the precision after.
    cases = [
        ("highest", "AuthenticAMD", 7e-7, "medium"),
        ("highest", "AuthenticAMD", 2e-3, "highest"),
        ("highest", "GenuineIntel", 3e-7, "highest"),
        ("high", "AuthenticAMD", 3e-7, "high"),  # the user's
    ]
    for before, vendor, error, after in cases:
        torch.set_float32_matmul_precision(before)
        monkeypatch.setattr(
            device,
            "product_error",
            lambda error=error: error if device.matmul_precision() == "medium" else 3e-7,
        )
        assert device.choose_products(cpuinfo(tmp_path, vendor)) is (after == "medium")
        assert torch.get_float32_matmul_precision() == after
    assert not device.choose_products(tmp_path / "absent")


def test_products_of_this_machine_are_exact_after_the_choice(tmp_path: Path) -> None:
    torch.set_float32_matmul_precision("highest")
    device.choose_products()
    device.choose_products(cpuinfo(tmp_path, "AuthenticAMD"))
    assert device.product_error() < 2e-6
