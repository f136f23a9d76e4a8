"""Computes the loss of one version and its gradients, without the networks, for each line on standard input.

usage: python loss_worker.py MODE STEPS        (in the folder of the version)
"""

from __future__ import annotations

import json
import sys
import time


def main() -> None:
    sys.path.insert(0, ".")
    import mindspore as ms
    import numpy as np
    from src.config import Config
    from src.loss import ContrastiveLoss

    mode, steps = sys.argv[1], int(sys.argv[2])
    ms.set_context(mode=ms.GRAPH_MODE if mode == "graph" else ms.PYNATIVE_MODE, device_target="CPU")
    config = Config()
    loss = ContrastiveLoss(config.batch_size, config.temperature, config.feature_weight, config.eps)
    random = np.random.RandomState(config.seed)
    sizes = (config.embedding_dim, config.feature_dim, config.feature_dim)
    inputs = [ms.Tensor(random.randn(config.batch_size, size), ms.float32) for size in sizes]
    inputs.append(ms.Tensor(random.randint(0, config.num_classes, config.batch_size), ms.int32))
    gradient = ms.value_and_grad(loss, (0, 1))
    answers, sys.stdout = sys.stdout, sys.stderr
    for _ in range(steps):
        sys.stdin.readline()
        wall, processor = time.perf_counter(), time.process_time()
        value, gradients = gradient(*inputs)
        number = float(value.asnumpy())
        for one in gradients:
            one.asnumpy()
        spent = time.perf_counter() - wall, time.process_time() - processor
        print(json.dumps([*spent, number, True]), file=answers, flush=True)


if __name__ == "__main__":
    main()
