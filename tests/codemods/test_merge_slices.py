"""What merge-slices makes of pieces and of a Concat that grows, and what it leaves to a person."""

from __future__ import annotations

from pathlib import Path
from textwrap import indent

import pytest
from rewriting import file, reasons, rewrite

from mslint.findings import Applicability


def loss(body: str) -> str:
    """Return a file with a loss whose construct is ``body``."""
    return file(f"class Loss(nn.Cell):\n    def construct(self, x, box, convs, features):\n{indent(body, ' ' * 8)}")


REWRITTEN = {
    "slices in variables, a comment": (
        "xy = ops.sigmoid(x[:, 0:2]) * 2 - 0.5\nwh = ops.sigmoid(x[:, 2:4]) * 2 - 0.5  # sizes\n"
        "return ops.concat((xy, wh), 1)\n",
        "# sizes\nreturn ops.sigmoid(x[:, 0:4]) * 2 - 0.5\n",
        Applicability.SAFE,
    ),
    "the last axis": (
        "return ops.concat([ops.exp(box[..., :2]), ops.exp(box[..., 2:4])], axis=-1).sum()\n",
        "return ops.exp(box[..., :4]).sum()\n",
        Applicability.SAFE,
    ),
    "brackets where they are needed": (
        "return ops.cat((box[..., :1] + 1, box[..., 1:2] + 1), -1) * ops.relu(x)\n",
        "return (box[..., :2] + 1) * ops.relu(x)\n",
        Applicability.SAFE,
    ),
    "columns that are stacked": (
        "return ops.stack((ops.log(x[:, 0] + 1), ops.log(x[:, 1] + 1)), 1)\n",
        "return ops.log(x[:, 0:2] + 1)\n",
        Applicability.SAFE,
    ),
    "several tensors, the last axis": (
        "low = ops.square(x[..., 0:1] - box[..., 2:3])\nhigh = ops.square(x[..., 1:2] - box[..., 3:4])\n"
        "return ops.concat((low, high), -1)\n",
        "return ops.square(x[..., 0:2] - box[..., 2:4])\n",
        Applicability.SAFE,
    ),
    "brackets that are there, variables that nothing read before": (
        "unused = x * 2\nunused = ops.log(unused)\na = (x[..., 0:1] + x[..., 2:3]) / 2  # centre\n"
        "b = (x[..., 1:2] + x[..., 3:4]) / 2\nreturn ops.concat((a, b), -1)\n",
        "unused = x * 2\nunused = ops.log(unused)\n# centre\nreturn (x[..., 0:2] + x[..., 2:4]) / 2\n",
        Applicability.SAFE,
    ),
    "some of what is put together": (
        "box_x1 = box[..., 0:1] - box[..., 2:3] / 2\nbox_y1 = box[..., 1:2] - box[..., 3:4] / 2\n"
        "box_x2 = box[..., 0:1] + box[..., 2:3] / 2\nbox_y2 = box[..., 1:2] + box[..., 3:4] / 2\n"
        "return ops.Concat(-1)((box_x1, box_y1, box_x2, box_y2))\n",
        "box_x1_y1 = box[..., 0:2] - box[..., 2:4] / 2\nbox_x2_y2 = box[..., 0:2] + box[..., 2:4] / 2\n"
        "return ops.Concat(-1)((box_x1_y1, box_x2_y2))\n",
        Applicability.SAFE,
    ),
    "several tensors of unknown rank": (
        "return ops.concat((x[:, 0:1] - box[:, 2:3], x[:, 1:2] - box[:, 3:4]), 1) - ops.relu(x)\n",
        "return x[:, 0:2] - box[:, 2:4] - ops.relu(x)\n",
        Applicability.UNSAFE,
    ),
    "a Concat that grows": (
        "out = x\nfor conv, feature in zip(convs, features):\n"
        "    out = ops.concat((out, conv(feature)), 1)  # grow\nreturn out.sum()\n",
        "out_parts = [x]\nfor conv, feature in zip(convs, features):\n"
        "    out_parts.append(conv(feature))  # grow\nout = ops.concat(out_parts, 1)\nreturn out.sum()\n",
        Applicability.SAFE,
    ),
    "a Concat that grows in two loops": (
        "out = x\nfor feature in features:\n    for conv in convs:\n        out = ops.concat((out, conv(feature)), 1)\n"
        "return out\n",
        "out_parts = [x]\nfor feature in features:\n    for conv in convs:\n        out_parts.append(conv(feature))\n"
        "out = ops.concat(out_parts, 1)\nreturn out\n",
        Applicability.SAFE,
    ),
    "a Concat that grows anew in each round": (
        "for feature in features:\n    out = x\n    for conv in convs:\n        out = ops.concat((out, conv(feature)), 1)\n"
        "    box = box + out.sum()\nreturn box\n",
        "for feature in features:\n    out_parts = [x]\n    for conv in convs:\n        out_parts.append(conv(feature))\n"
        "    out = ops.concat(out_parts, 1)\n    box = box + out.sum()\nreturn box\n",
        Applicability.SAFE,
    ),
    "a first value that is read before the loop": (
        "out = x * 2\nbox = box + out.sum()\nfor conv, feature in zip(convs, features):\n"
        "    out = ops.cat([out, conv(feature)])\nreturn out\n",
        "out = x * 2\nbox = box + out.sum()\nout_parts = [out]\nfor conv, feature in zip(convs, features):\n"
        "    out_parts.append(conv(feature))\nout = ops.cat(out_parts)\nreturn out\n",
        Applicability.SAFE,
    ),
    "a part that a setting decides on": (
        "out = x\nfor i, conv in enumerate(convs):\n    if conv is None or i < 2 and not self.wide:\n        continue\n"
        "    if self.mode == 'all':\n        out = ops.concat((out, conv(x)), 1)\nreturn out\n",
        "out_parts = [x]\nfor i, conv in enumerate(convs):\n    if conv is None or i < 2 and not self.wide:\n"
        "        continue\n    if self.mode == 'all':\n        out_parts.append(conv(x))\n"
        "out = ops.concat(out_parts, 1)\nreturn out\n",
        Applicability.SAFE,
    ),
    "a long part": (
        "out = None\nfor i, conv in enumerate(convs):\n    if i == 0:\n"
        "        out = conv(ops.relu(x) + ops.exp(x) * ops.abs(x) * 2 + 1 + x)\n    else:\n"
        "        out = ops.cat(\n            [out, conv(ops.relu(x) + ops.exp(x) * ops.abs(x) * 2 + 1 + x)]\n        )\n"
        "return out\n",
        "out_parts = []\nfor i, conv in enumerate(convs):\n    out_parts.append(\n"
        "        conv(ops.relu(x) + ops.exp(x) * ops.abs(x) * 2 + 1 + x)\n    )\n"
        "out = ops.cat(out_parts)\nreturn out\n",
        Applicability.SAFE,
    ),
    "a first round of its own": (
        "out = None\nfor i, conv in enumerate(convs):\n    if i == 0:\n        out = conv(x)\n    else:\n"
        "        out = ops.cat([out, conv(x)])\nreturn out\n",
        "out_parts = []\nfor i, conv in enumerate(convs):\n    out_parts.append(conv(x))\n"
        "out = ops.cat(out_parts)\nreturn out\n",
        Applicability.SAFE,
    ),
}


@pytest.mark.parametrize("case", REWRITTEN)
def test_merged(case: str, tmp_path: Path) -> None:
    before, after, applicability = REWRITTEN[case]
    safe = rewrite(tmp_path, "merge-slices", loss(before), unsafe=False)
    assert safe.failures == ()
    assert safe.text == loss(after if applicability is Applicability.SAFE else before)
    assert rewrite(tmp_path, "merge-slices", loss(before)).text == loss(after)


REFUSED = {
    "added up": ("return (x[:, 0] ** 2 + x[:, 1] ** 2).sum()\n", "added up or multiplied"),
    "another axis": (
        "return ops.concat((ops.exp(x[:, 0:1]), ops.exp(x[:, 1:2])), -1)\n",
        "cut along axis 1 and put together along axis -1",
    ),
    "the other order": ("return ops.concat((ops.exp(x[:, 1:2]), ops.exp(x[:, 0:1])), 1)\n", "in the order in which"),
    "other things between them": (
        "return ops.concat((ops.exp(x[:, 0:1]), box, ops.exp(x[:, 1:2])), 1)\n",
        "other things are put between them",
    ),
    "a tensor in the formula": (
        "return ops.concat((x[:, 0:1] * box, x[:, 1:2] * box), 1)\n",
        "`box` in the formula may be a tensor",
    ),
    "read elsewhere": (
        "a = ops.exp(x[:, 0:1])\nb = ops.exp(x[:, 1:2])\nreturn ops.concat((a, b), 1).sum() + a.mean()\n",
        "`a` is read in row 9 too",
    ),
    "sizes that differ": (
        "return ops.concat((x[:, 0:2] - box[:, 0:1], x[:, 2:4] - box[:, 1:2]), 1)\n",
        "pieces of several sizes",
    ),
    "not put together": (
        "a = ops.sigmoid(x[..., 0])\nb = ops.sigmoid(x[..., 1])\nc = ops.sigmoid(x[..., 2:])\nreturn a - b * c.sum()\n",
        "not put together again",
    ),
    "another condition than the first round": (
        "out = x\nfor i, conv in enumerate(convs):\n    if self.new:\n        out = conv(x)\n    else:\n"
        "        out = ops.cat([out, conv(x)])\nreturn out\n",
        "the first round gives `out` something else",
    ),
    "operators sharded by hand": (
        "self.cat.shard(((1, 1), (1, 1)))\nout = x\nfor conv, feature in zip(convs, features):\n"
        "    out = ops.concat((out, conv(feature)), 1)\nreturn out\n",
        "sharded by hand",
    ),
    "two statements that let it grow": (
        "out = x\nfor conv, feature in zip(convs, features):\n    if self.new:\n        out = ops.concat((out, conv(x)), 1)\n"
        "    else:\n        out = ops.concat((out, conv(feature)), 1)\nreturn out\n",
        "`out` grows in several places (rows 10, 12)",
    ),
    "two loops that let it grow": (
        "out = x\nfor feature in features:\n    for conv in convs:\n        out = ops.concat((out, conv(feature)), 1)\n"
        "    out = ops.concat((out, feature), 1)\nreturn out\n",
        "`out` grows in several places (rows 10, 11)",
    ),
    "a part that is written in place later": (
        "out = x\nfor i, conv in enumerate(convs):\n    out = ops.concat((out, box), 1)\n    box[:, 0] = i\nreturn out\n",
        "`box` is written in place in row 10",
    ),
    "a part that is written in place in graph mode": (
        "out = x\nsum = x\nfor conv in convs:\n    sum += conv(x)\n    out = ops.concat((out, sum), 1)\nreturn out\n",
        "row 10 writes to `sum` in place in graph mode",
    ),
    "a part that a tensor decides on": (
        "out = x\nfor conv in convs:\n    if x.sum() > 0:\n        out = ops.concat((out, conv(x)), 1)\nreturn out\n",
        "the test in row 9 may be a tensor",
    ),
    "a round that a tensor leaves out": (
        "out = x\nfor conv in convs:\n    if box.sum() > 0:\n        continue\n    out = ops.concat((out, conv(x)), 1)\n"
        "return out\n",
        "the test in row 9 may be a tensor",
    ),
    "an axis of its own in each round": (
        "out = x\nfor i, conv in enumerate(convs):\n    out = ops.concat((out, conv(x)), i % 2)\nreturn out\n",
        "`i` says how to concatenate in each round",
    ),
    "a loop that may have no rounds": (
        "out = None\nfor i, conv in enumerate(convs):\n    if i == 0:\n        out = conv(x)\n    else:\n"
        "        out = ops.cat([out, conv(x)])\nreturn x if out is None else out\n",
        "row 13 asks whether there was a round at all",
    ),
    "a loop that an exception may end": (
        "out = x\ntry:\n    for conv in convs:\n        out = ops.cat([out, conv(x)])\nexcept ValueError:\n    pass\n"
        "return out\n",
        "may be left by an exception",
    ),
    "two names for what grows": (
        "out = both = x\nfor conv in convs:\n    out = both = ops.cat([out, conv(x)])\nreturn out + both\n",
        "what grows has several names",
    ),
    "an attribute": (
        "self.out = x\nfor conv in convs:\n    self.out = ops.cat([self.out, conv(x)])\nreturn self.out\n",
        "`self.out` is no local variable",
    ),
    "parts put before": (
        "out = x\nfor conv in convs:\n    out = ops.concat((conv(x), out), 1)\nreturn out\n",
        "new parts go before `out`",
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_is_left_to_a_person_says_why(case: str, tmp_path: Path) -> None:
    body, reason = REFUSED[case]
    done = rewrite(tmp_path, "merge-slices", loss(body))
    assert done.failures == ()
    assert done.text == loss(body)
    assert any(reason in message for message in reasons(done)), reasons(done)
