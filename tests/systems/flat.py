"""A parser of somebody else that learns nothing: all its trees have two constituents."""

DRIVER = """
import os, sys, time
from pathlib import Path

task, how, *rest = sys.argv[1:]
if task == "train":
    train, dev, model, seed = rest
    Path(model, "seen.txt").write_text("\\n".join(sorted(os.listdir(Path(train).parent))))
    Path(model, "threads.txt").write_text(os.environ["OMP_NUM_THREADS"])
    if how == "fails":
        print("first line"), print("the reason")
        sys.exit(3)
    if how != "nothing":
        Path(model, "model").write_text(seed)
    if how in ("slow", "nothing"):
        Path(model, "pid.txt").write_text(str(os.getpid()))
        time.sleep(60)
else:
    model, given, output = rest
    with open(given) as lines, open(output, "w") as out:
        for number, line in enumerate(lines):
            words = line.split()
            if how == "faulty" and number == 1:
                out.write("(S (X oops\\n")
                continue
            if how == "short" and number == 2:
                break
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
[parse]
command = ["{python}", "{here}/flat.py", "parse", "{how}", "{model}", "{input}", "{output}"]
input = "words"
"""
