"""How soon a parser is good enough: seconds from the command to a score on dev, for a table.

Each seed is a training of its own, timed with the start of the program and the reading of the
treebank. A row of ``results/speedrun.md`` has the seconds of each seed, the commit and the command;
p is that of the exact permutation test against the fastest earlier row of the same score and
processor, one-sided. Below 0.01 it is a record.

usage: speedrun.py SCORE SEEDS OPTION...       those of 'spmrl-bench train'
"""

from __future__ import annotations

import datetime
import subprocess
import sys
import tempfile
import time
from itertools import combinations
from pathlib import Path
from statistics import mean, stdev

import torch

from spmrl_bench.leaderboard.environment import find_commit, find_hardware

TABLE = Path(__file__).resolve().parent.parent / "results" / "speedrun.md"
HEADINGS = ("dev", "seconds", "p", "seconds of each seed", "machine", "day", "commit", "command")


def seconds_of(score: float, seed: int, options: list[str]) -> float:
    """Train with a seed until dev has the score; a RuntimeError if it never has."""
    with tempfile.TemporaryDirectory() as runs:
        command = [
            *(str(Path(sys.executable).with_name("spmrl-bench")), "train", *options),
            *("--seed", str(seed)),
            *("--runs", runs, "--jobs", "1", "--set", f"train.target_score={score}"),
        ]
        begun = time.perf_counter()
        done = subprocess.run(command, capture_output=True, text=True)
        took = time.perf_counter() - begun
    if "stopped by target_score" not in done.stderr + done.stdout:
        raise RuntimeError(f"seed {seed}: {(done.stderr or done.stdout)[-500:]}")
    return took


def p_faster(ours: list[float], theirs: list[float]) -> float:
    """How often a random division of all times has as small a mean on our side."""
    times, found = ours + theirs, sum(ours)
    sums = [sum(times[k] for k in chosen) for chosen in combinations(range(len(times)), len(ours))]
    return sum(each <= found + 1e-9 for each in sums) / len(sums)


def rows_of(table: Path) -> list[list[str]]:
    lines = table.read_text(encoding="utf-8").splitlines() if table.exists() else []
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines if "|" in line]
    return rows[2:]


def main() -> None:
    score, seeds, *options = sys.argv[1:]
    hardware, threads = find_hardware(), torch.get_num_threads()
    machine = f"{hardware.processor}, {threads} threads"
    times = [seconds_of(float(score), seed, options) for seed in range(1, int(seeds) + 1)]
    rows = rows_of(TABLE)
    earlier = [
        [float(s) for s in row[3].split()] for row in rows if (row[0], row[4]) == (score, machine)
    ]
    p = f"{p_faster(times, min(earlier, key=mean)):.4f}" if earlier else ""
    spread = f" ± {stdev(times):.1f}" if len(times) > 1 else ""
    each = " ".join(f"{one:.1f}" for one in times)
    day, commit = datetime.date.today().isoformat(), (find_commit() or "")[:10]
    command = f"`train {' '.join(options)}`"
    rows.append([score, f"{mean(times):.1f}{spread}", p, each, machine, day, commit, command])
    lines = [HEADINGS, ["---"] * len(HEADINGS), *rows]
    table = "".join(f"| {' | '.join(row)} |\n" for row in lines)
    about = (__doc__ or "").split("\n\n")[1]
    TABLE.write_text(f"# Speedrun\n\n{about}\n\n{table}", encoding="utf-8")
    print(table, end="")


if __name__ == "__main__":
    main()
