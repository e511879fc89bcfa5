"""The system that the tests of this folder train and run: all its trees have two constituents."""

from __future__ import annotations

import pytest

from spmrl_bench.systems.description import SystemDescription, load_system
from tests.laboratory import Laboratory

DRIVER = """
import os, sys, time
from pathlib import Path

task, how, *rest = sys.argv[1:]
if task == "train":
    train, dev, model, seed = rest
    Path(model, "seen.txt").write_text("\\n".join(sorted(os.listdir(Path(train).parent))))
    Path(model, "read.txt").write_text(Path(train).read_text() + Path(dev).read_text())
    if how == "fails":
        print("first line"), print("the reason")
        sys.exit(3)
    print("epoch 1", "epoch 2", sep="\\n")
    if how != "nothing":
        Path(model, "model").write_text(seed)
    if how in ("slow", "nothing"):
        Path(model, "pid.txt").write_text(str(os.getpid()))
        time.sleep(60)
else:
    if how == "starts":
        time.sleep(1)
    model, given, output = rest
    with open(given) as lines, open(output, "w") as out:
        for number, line in enumerate(lines):
            words = line.split()
            if how == "faulty" and number == 1:
                out.write("(S (X oops\\n")
                continue
            inner = " ".join(f"(X {word})" for word in words[1:])
            out.write(f"(ROOT (S (X {words[0]}) (VP {inner})))\\n")
"""

DESCRIPTION = """\
title = "Flat"
url = "https://example.org"
layer = "constituents"
environment = "program"
[settings]
how = "well"
[train]
command = ["{python}", "{here}/flat.py", "train", "{how}", "{train}", "{dev}", "{model}", "{seed}"]
format = "brackets"
product = "model"
epoch = '^epoch (\\d+)'
[parse]
command = ["{python}", "{here}/flat.py", "parse", "{how}", "{model}", "{input}", "{output}"]
input = "words"
"""


@pytest.fixture
def flat(laboratory: Laboratory) -> SystemDescription:
    (laboratory.folder / "flat.py").write_text(DRIVER)
    path = laboratory.folder / "flat.toml"
    path.write_text(DESCRIPTION)
    return load_system(str(path))
