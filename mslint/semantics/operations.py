"""The spellings of the operations that formulas are read in."""

from __future__ import annotations

SPELLINGS = {
    "add": "add tensoradd",
    "subtract": "sub subtract tensorsub",
    "multiply": "mul multiply tensormul",
    "divide": "div divide realdiv truedivide tensordiv divnonan",
    "power": "pow pows power tensorpow",
    "negative": "neg negative",
    "square": "square",
    "sqrt": "sqrt",
    "rsqrt": "rsqrt",
    "exp": "exp",
    "log": "log log2 log10 log1p",
    "absolute": "abs absolute",
    "sum": "reducesum sum nansum",
    "mean": "reducemean mean",
    "norm": "norm lpnorm vectornorm",
    "var": "var",
    "std": "std",
    "softmax": "softmax softmax2d",
    "sigmoid": "sigmoid",
    "log_softmax": "logsoftmax",
    "cross_entropy": "crossentropyloss crossentropy softmaxcrossentropywithlogits sparsesoftmaxcrossentropywithlogits",
    "clip": "clipbyvalue clamp clip maximum minimum relu",
    "select": "where select maskedfill",
    "join": "concat cat stack hstack vstack pack",
    "same": "reshape view viewas squeeze expanddims unsqueeze cast astype float half to type transpose permute swapaxes "
    "swapdims tile repeat broadcastto expand expandas reshapeas typeas flatten stopgradient identity copy contiguous tensor "
    "parameter repeatelements repeatinterleave",
    "index": "gather gatherd gathernd gatherelements take indexselect slice stridedslice split chunk maskedselect narrow "
    "unstack",
    "extreme": "max min amax amin reducemax reducemin argmaxwithvalue",
}
_OPERATIONS = {spelling: operation for operation, words in SPELLINGS.items() for spelling in words.split()}


def operation_called(name: str) -> str:
    """Return the operation that an operator, layer, function or method called ``name`` computes; empty for any other."""
    return _OPERATIONS.get(name.replace("_", "").lower(), "")
