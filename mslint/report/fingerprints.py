"""Marks by which code hosts know a finding again when its line has moved."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

from mslint.findings import Finding
from mslint.source.identity import identities


def fingerprints(findings: Sequence[Finding], texts: Mapping[str, str]) -> Iterator[str]:
    """Yield a mark for each finding, different for each of several findings in equal statements."""
    met = Counter[tuple[str, ...]]()
    for finding, identity in zip(findings, identities(findings, texts), strict=True):
        key = (finding.filename, identity.code, identity.symbol, identity.text)
        met[key] += 1
        yield hashlib.sha256("\0".join((*key, str(met[key]))).encode("utf-8", "surrogateescape")).hexdigest()
