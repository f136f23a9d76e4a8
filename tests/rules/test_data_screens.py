"""Which files the rules about shards read with libcst."""

from __future__ import annotations

import ast

import pytest

from mslint.rules.data.screens import building, passes, shares_sampled

_BOTH = "(files, sampler=order, num_shards=8, shard_id=0)"


@pytest.mark.parametrize(
    "text",
    [
        f"import mindspore.dataset as ds\ndata = ds.MindDataset{_BOTH}",
        f"from mindspore.dataset import MindDataset as M\ndata = M{_BOTH}",
        f"from mindspore.dataset import *\ndata = MindDataset{_BOTH}",
        f"from common import *\ndata = Records{_BOTH}",
        f"from common import Records\ndata = Records{_BOTH}",
        f"import common as c\ndata = c.readers.records{_BOTH}",
        f"import mindspore.dataset as ds\nclass A:\n    Kind = ds.MindDataset\ndef records():\n    return A.Kind{_BOTH}",
        f"def make():\n    def inner():\n        from mindspore import dataset\n        return dataset.MindDataset{_BOTH}",
        "import mindspore.dataset as ds\ndata = ds.CLUEDataset(a, b, c, d, e, f, sampler=order)",
        "import mindspore.dataset as ds\ndata = ds.ImageFolderDataset(folder, None, 4, True, order, None, None, False, 8, 0)",
    ],
)
def test_what_may_get_a_sampler_beside_shards_is_let_in(text: str) -> None:
    assert shares_sampled(ast.parse(text))


@pytest.mark.parametrize(
    "text",
    [
        "import mindspore.dataset as ds\nds.MindDataset(files, num_shards=8)\nds.MindDataset(files, sampler=order)",
        f"def records(files, sampler, num_shards, shard_id):\n    pass\nrecords{_BOTH}",
    ],
)
def test_what_gets_one_of_them_is_not(text: str) -> None:
    assert not shares_sampled(ast.parse(text))


@pytest.mark.parametrize(
    "text",
    [
        "from mindspore.dataset import DistributedSampler as D\nD(size, device)",
        "import mindspore.dataset.samplers as s\ns.DistributedSampler(num_shards=size, shard_id=device)",
        "from readers import open_records\nopen_records(files, size, device)",
    ],
)
def test_a_shard_is_seen_however_it_is_passed(text: str) -> None:
    assert [call for call in building(ast.parse(text)) if passes(call, "shard_id", 1)]
