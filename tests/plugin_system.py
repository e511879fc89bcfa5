"""A parser of somebody else that is a program: every sentence is one phrase."""

import sys
from pathlib import Path

task, *rest = sys.argv[1:]
if task == "train":
    train, model, label = rest
    print(f"{len(Path(train).read_text().splitlines())} sentences")
    Path(model, "label").write_text(label)
else:
    model, given, output = map(Path, rest)
    label = (model / "label").read_text()
    lines = given.read_text(encoding="utf-8").splitlines()
    trees = (" ".join(f"(X {word})" for word in line.split()) for line in lines)
    output.write_text("".join(f"({label} {tree})\n" for tree in trees), encoding="utf-8")
