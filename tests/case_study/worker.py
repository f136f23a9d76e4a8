"""Trains one version of the case study, a step for each line on standard input, and tells what the step took.

usage: python worker.py MODE STEPS        (in the folder of the version)
"""

from __future__ import annotations

import json
import sys
import time


def main() -> None:
    mode, steps = sys.argv[1:]
    sys.path.insert(0, ".")
    sys.argv = ["train.py", "--mode", mode, "--steps", steps, "--epochs", "1000"]
    import train
    from src.step import TrainOneStep

    make_step = TrainOneStep.__call__
    answers, sys.stdout = sys.stdout, sys.stderr

    def told(step: TrainOneStep, *batch: object) -> object:
        sys.stdin.readline()
        wall, processor = time.perf_counter(), time.process_time()
        loss, finite = make_step(step, *batch)
        value, finished = float(loss.asnumpy()), bool(finite)
        for parameter in step.network.get_parameters():
            parameter.asnumpy()
        spent = time.perf_counter() - wall, time.process_time() - processor
        print(json.dumps([*spent, value, finished]), file=answers, flush=True)
        return loss, finite

    TrainOneStep.__call__ = told
    train.train()


if __name__ == "__main__":
    main()
