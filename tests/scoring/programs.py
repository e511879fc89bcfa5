"""The C programs EVALB and EVALB_SPMRL, and others that print or fail, for tests that ask them.

The environment variables ``EVALB`` and ``EVALB_SPMRL`` name the executable files, or the source
``evalb.c``. A program that is built here has its memory watched: where it would read beyond an
array, it ends with a report instead of a figure that depends on what lies there.
"""

from __future__ import annotations

import atexit
import os
import shlex
import shutil
import subprocess
import tempfile
from functools import cache
from pathlib import Path

import pytest

from spmrl_bench.scoring import Program

WATCHED = ("-O1", "-g", "-w", "-fsanitize=address,undefined", "-fno-sanitize-recover=all")
PLAIN = ("-O1", "-w")


def program(name: Program) -> str:
    """Path of the executable; skips the test where there is none."""
    given = os.environ.get(name)
    if not given:
        pytest.skip(f"no {name} (set the environment variable {name} to its binary or source)")
    return _built(given) if given.endswith(".c") else given


@cache
def _built(source: str) -> str:
    compiler = next(filter(shutil.which, ("cc", "gcc", "clang")), None)
    if compiler is None:
        pytest.skip("no C compiler to build it with")
    folder = tempfile.mkdtemp(prefix="spmrl-bench-tests-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    binary = Path(folder) / "evalb"
    for options in (WATCHED, PLAIN):  # not every compiler comes with what watches memory
        command = [compiler, *options, "-o", str(binary), source, "-lm"]
        if subprocess.run(command, capture_output=True, check=False).returncode == 0:
            os.environ.setdefault("ASAN_OPTIONS", "detect_leaks=0")
            return str(binary)
    pytest.skip(f"{source} cannot be built")


# Three invented sentences, and what EVALB prints for them.
GOLD = """\
(TOP (S (NP (NN a)) (VP (VB b) (NP (NN c)))))
(TOP (S (NP (DT the) (NN dog)) (VP (VB barks))))
(TOP (NP (NN a) (NN b)))
"""
TEST = """\
(TOP (S (NP (NN a)) (VP (VB b) (NP (NN c)))))
(TOP (S (NP (DT the)) (VP (NN dog) (VB barks))))
(TOP (X (NN a) (JJ b)))
"""
#: The second parse has another word and the third is missing.
LOSING = """\
(TOP (S (NP (NN a)) (VP (VB b) (NP (NN c)))))
(TOP (S (NP (DT a)) (VP (NN dog) (VB barks))))
(())
"""

_HEADER = """\
  Sent.                        Matched  Bracket   Cross        Correct Tag
 ID  Len.  Stat. Recal  Prec.  Bracket gold test Bracket Words  Tags Accracy
============================================================================
"""
_NAMES = (
    "Number of sentence", "Number of Error sentence", "Number of Skip  sentence",
    "Number of Valid sentence", "Bracketing Recall", "Bracketing Precision", "Bracketing FMeasure",
    "Complete match", "Average crossing", "No crossing", "2 or less crossing", "Tagging accuracy",
)  # fmt: skip


def _output(rows: str, figures: str) -> str:
    pairs = zip(_NAMES, figures.split(), strict=True)
    summary = "".join(f"{name:25} = {figure:>6}\n" for name, figure in pairs)
    return f"{_HEADER}{rows}=== Summary ===\n\n-- All --\n{summary}\n-- len<=40 --\n{summary}"


#: Printed by EVALB with COLLINS.prm for the sentences above.
OUTPUT = _output(
    """\
   1    3    0  100.00 100.00     4      4    4      0      3     3   100.00
   2    3    0   33.33  33.33     1      3    3      1      3     3   100.00
   3    2    0    0.00   0.00     0      1    1      0      2     1    50.00
============================================================================
                 62.50  62.50      5     8     8      1      8     7    87.50
""",
    "3 0 0 3 62.50 62.50 62.50 33.33 0.33 66.67 100.00 87.50",
)
#: Printed by EVALB for the gold sentences and ``LOSING``.
TWO_LEFT_OUT = _output(
    """\
   1    3    0  100.00 100.00     4      4    4      0      3     3   100.00
   2    3    1    0.00   0.00     0      0    0      0      0     0     0.00
   3    2    2    0.00   0.00     0      0    0      0      0     0     0.00
============================================================================
                100.00 100.00      4     4     4      0      3     3   100.00
""",
    "3 1 1 1 100.00 100.00 100.00 100.00 0.00 100.00 100.00 100.00",
)


def prints(output: str | bytes, errors: str = "", then: str = "exit 0") -> str:
    """Shell commands that write both streams and end with another command."""
    octal = "".join(
        f"\\0{byte:03o}" for byte in (output.encode() if isinstance(output, str) else output)
    )
    return f"printf %b {shlex.quote(octal)}; printf %s {shlex.quote(errors)} >&2; {then}"


def fake_program(path: Path, body: str) -> Path:
    """An executable that is called as ``PROGRAM -p PARAMETERS GOLD TEST`` and runs ``body``."""
    path.write_text(f"#!/bin/sh\n{body}\n", encoding="utf-8")
    path.chmod(0o755)
    return path
