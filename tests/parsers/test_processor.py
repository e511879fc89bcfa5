"""Settings of the process: made where they help, and never where they change a result."""

from __future__ import annotations

import ctypes
import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from spmrl_bench.parsers import processor
from spmrl_bench.parsers.device import choose_device

FAULTS = """
import resource, sys
import torch
from spmrl_bench.parsers import processor
if sys.argv[1] == "keep":
    assert processor.keep_memory()
def work():
    for _ in range(20):
        torch.empty(12_000_000).fill_(1)
work()
before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
work()
print(resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before)
"""


def has_glibc() -> bool:
    try:
        return bool(os.confstr("CS_GNU_LIBC_VERSION")) and hasattr(ctypes.CDLL(None), "mallopt")
    except (AttributeError, OSError, ValueError):
        return False


@pytest.mark.skipif(not has_glibc(), reason="malloc is not glibc's")
def test_kept_memory_is_not_cleared_again() -> None:
    faults = {}
    environment = {k: v for k, v in os.environ.items() if not k.startswith("MALLOC_")}
    environment.pop("GLIBC_TUNABLES", None)
    for mode in ("keep", "return"):
        command = [sys.executable, "-c", FAULTS, mode]
        environment["PYTHONPATH"] = str(Path(__file__).resolve().parents[2])
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
        faults[mode] = int(done.stdout)
    # Where pages are huge, the memory that was returned has 500 of them, else 200,000.
    assert faults["keep"] < 100 < faults["return"]


@pytest.mark.parametrize("name", ["MALLOC_TRIM_THRESHOLD_", "GLIBC_TUNABLES"])
def test_settings_of_the_user_are_left_alone(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    monkeypatch.setenv(name, "glibc.malloc.arena_max=1")
    monkeypatch.setattr(ctypes, "CDLL", None)
    assert not processor.keep_memory()


def test_other_c_libraries_are_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    def unknown(_: str) -> str:
        raise ValueError("unrecognized configuration name")

    monkeypatch.setattr(os, "confstr", unknown)
    monkeypatch.delenv("GLIBC_TUNABLES", raising=False)
    assert not processor.keep_memory()


def errors(monkeypatch: pytest.MonkeyPatch, of_medium: float) -> None:
    """As if products under "medium" had this error, and others a good one."""
    monkeypatch.setattr(
        processor,
        "_product_error",
        lambda: of_medium if torch.get_float32_matmul_precision() == "medium" else 3e-7,
    )


@pytest.mark.parametrize(
    ("vendor", "error", "taken"),
    [("AuthenticAMD", 7e-7, True), ("AuthenticAMD", 2e-3, False), ("GenuineIntel", 3e-7, False)],
)
def test_products_go_to_onednn_only_where_they_are_as_exact(
    monkeypatch: pytest.MonkeyPatch, vendor: str, error: float, taken: bool
) -> None:
    torch.set_float32_matmul_precision("highest")
    errors(monkeypatch, error)
    assert processor.choose_products(vendor) is taken
    assert torch.get_float32_matmul_precision() == ("medium" if taken else "highest")


def test_choice_of_the_user_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    torch.set_float32_matmul_precision("high")
    errors(monkeypatch, 3e-7)
    assert not processor.choose_products("AuthenticAMD")
    assert torch.get_float32_matmul_precision() == "high"


def test_products_of_this_machine_are_exact_after_the_choice() -> None:
    torch.set_float32_matmul_precision("highest")
    choose_device("cpu")
    processor.choose_products()
    processor.choose_products("AuthenticAMD")
    assert processor._product_error() < 2e-6


def test_vendor(tmp_path: Path) -> None:
    path = tmp_path / "cpuinfo"
    assert processor._vendor(path) == ""
    path.write_text("processor\t: 0\nvendor_id\t: AuthenticAMD\n", encoding="utf-8")
    assert processor._vendor(path) == "AuthenticAMD"
