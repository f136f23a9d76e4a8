"""Two real ranks of a version of the case study: what each read, drew and ended with."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any

RANKS = 2
SAMPLES = 32  # as in two_ranks.py


def trained_on_two_ranks(version: Path, folder: Path) -> list[dict[str, list[int]]]:
    """Train for one epoch by msrun; return samples, augmented images and checksums of the weights of each rank."""
    answers, logs = folder / "answers", folder / "logs"
    answers.mkdir(parents=True)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [sys.executable, "-m", "mindspore.parallel.cluster.run", f"--worker_num={RANKS}"]
    command += [f"--local_worker_num={RANKS}", f"--master_port={port}", f"--log_dir={logs}", "--join=True"]
    command += ["python", str(Path(__file__).parent / "two_ranks.py"), str(version), str(answers)]
    # msrun takes the first python of the path.
    path = os.pathsep.join((os.path.dirname(sys.executable), os.environ.get("PATH", os.defpath)))
    environment = {**os.environ, "PATH": path, "MS_OM_PATH": str(folder), "PYTHONDONTWRITEBYTECODE": "1"}
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, timeout=900)
    files = [answers / f"{rank}.json" for rank in range(RANKS)]
    if not all(file.exists() for file in files):
        ends = "".join(log.read_text(errors="replace")[-2000:] for log in sorted(logs.glob("worker_*.log")))
        raise RuntimeError(f"the ranks did not come to their end\n{done.stderr[-2000:]}\n{ends}")
    return [json.loads(file.read_text(encoding="utf-8")) for file in files]


def told_apart(ranks: list[dict[str, list[int]]]) -> dict[str, Any]:
    """Return what the table shows of the ranks."""
    first, second = ranks
    samples = [set(rank["samples"]) for rank in ranks]
    pairs = list(zip(first["images"], second["images"], strict=True))
    return {
        "steps": len(first["weights"]) - 1,
        "read": [len(rank) for rank in samples],
        "read by both": len(samples[0] & samples[1]),
        "read by none": SAMPLES - len(samples[0] | samples[1]),
        "augmented alike": f"{sum(one == other for one, other in pairs)} of {len(pairs)}",
        "first weights equal": first["weights"][0] == second["weights"][0],
        "weights equal after each step": first["weights"] == second["weights"],
        "weights move": len(set(first["weights"])) > 1,
    }
