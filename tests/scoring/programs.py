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
_SUMMARY = """\
Number of sentence        =      3
Number of Error sentence  =      0
Number of Skip  sentence  =      0
Number of Valid sentence  =      3
Bracketing Recall         =  62.50
Bracketing Precision      =  62.50
Bracketing FMeasure       =  62.50
Complete match            =  33.33
Average crossing          =   0.33
No crossing               =  66.67
2 or less crossing        = 100.00
Tagging accuracy          =  87.50
"""
#: Printed by EVALB with COLLINS.prm for the sentences above.
OUTPUT = f"""{_HEADER}\
   1    3    0  100.00 100.00     4      4    4      0      3     3   100.00
   2    3    0   33.33  33.33     1      3    3      1      3     3   100.00
   3    2    0    0.00   0.00     0      1    1      0      2     1    50.00
============================================================================
                 62.50  62.50      5     8     8      1      8     7    87.50
=== Summary ===

-- All --
{_SUMMARY}
-- len<=40 --
{_SUMMARY}"""
_SUMMARY_OF_ONE = """\
Number of sentence        =      3
Number of Error sentence  =      1
Number of Skip  sentence  =      1
Number of Valid sentence  =      1
Bracketing Recall         = 100.00
Bracketing Precision      = 100.00
Bracketing FMeasure       = 100.00
Complete match            = 100.00
Average crossing          =   0.00
No crossing               = 100.00
2 or less crossing        = 100.00
Tagging accuracy          = 100.00
"""
#: Printed by EVALB for the gold sentences and ``LOSING``.
TWO_LEFT_OUT = f"""{_HEADER}\
   1    3    0  100.00 100.00     4      4    4      0      3     3   100.00
   2    3    1    0.00   0.00     0      0    0      0      0     0     0.00
   3    2    2    0.00   0.00     0      0    0      0      0     0     0.00
============================================================================
                100.00 100.00      4     4     4      0      3     3   100.00
=== Summary ===

-- All --
{_SUMMARY_OF_ONE}
-- len<=40 --
{_SUMMARY_OF_ONE}"""


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
