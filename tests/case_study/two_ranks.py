"""Trains the version of the case study in the working directory on its share of the ranks, and tells what the rank saw.

usage: msrun --worker_num=2 --local_worker_num=2 ... two_ranks.py FOLDER FOR_ANSWERS

The images all are the same ramp, so that what an image has become shows what augmentation drew, whichever it was; there
are few of them, so that the ranks are done soon. The program itself is the version's.
"""

from __future__ import annotations

import json
import os
import sys
import zlib
from pathlib import Path

SAMPLES, BATCH = 32, 4


def main() -> None:
    folder, answers = sys.argv[1:]
    os.chdir(folder)
    sys.path.insert(0, folder)
    sys.argv = ["train.py", "--distributed", "--mode", "pynative", "--epochs", "1", "--batch_size", str(BATCH)]
    import numpy as np
    import train
    from mindspore.communication import get_rank
    from src.config import Config
    from src.dataset import ShapesDataset
    from src.step import TrainOneStep

    Config.samples = SAMPLES
    told: dict[str, list[int]] = {"samples": [], "images": [], "weights": []}
    build, make_step = ShapesDataset.__init__, TrainOneStep.__call__

    def build_ramp(source: ShapesDataset, *arguments: int) -> None:
        build(source, *arguments)
        size = source.images.shape[1]
        source.images[:] = np.arange(size * size * 3, dtype=np.uint8).reshape(size, size, 3)
        source.labels = np.arange(len(source.labels), dtype=np.int32)

    def checksum(step: TrainOneStep) -> int:
        found = 0
        for parameter in step.network.trainable_params():
            found = zlib.crc32(parameter.asnumpy().tobytes(), found)
        return found

    def step_told(step: TrainOneStep, image: object, label: object) -> object:
        if not told["weights"]:
            told["weights"].append(checksum(step))
        told["samples"] += label.asnumpy().tolist()
        told["images"] += [zlib.crc32(one.tobytes()) for one in image.asnumpy()]
        made = make_step(step, image, label)
        told["weights"].append(checksum(step))
        return made

    ShapesDataset.__init__, TrainOneStep.__call__ = build_ramp, step_told
    train.train()
    Path(answers, f"{get_rank()}.json").write_text(json.dumps(told), encoding="utf-8")


if __name__ == "__main__":
    main()
