# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
# SPDX-FileCopyrightText: 2026 The Heddle authors
"""What has been measured, round by round, and what follows from it."""

import math
import statistics


NOT_RUN = "not run"  # its part was not asked for


class Series:
    """The values of one figure of one peer for one size (or other key): one entry per round, None where it failed; and where
    the two CPUs were meanwhile: programs.CORE, NEAR or FAR, or None where they were moved or nobody looked."""

    def __init__(self):
        self.rounds = {}
        self.kinds = {}


class Results:
    def __init__(self):
        self.series = {}    # (figure, peer, key) -> Series
        self.failures = {}  # (figure, peer) -> reasons, in order
        self.hopeless = set()

    def add(self, figure, peer, round_number, values, kind=None):
        for key, value in values.items():
            series = self.series.setdefault((figure, peer, key), Series())
            series.rounds[round_number] = value
            series.kinds[round_number] = kind

    def fail(self, figure, peer, reason, hopeless):
        self.failures.setdefault((figure, peer), []).append(reason)
        if hopeless:
            self.hopeless.add((figure, peer))

    def skip(self, figure, peer):
        """True when trying again would only cost time."""
        return (figure, peer) in self.hopeless or len(self.failures.get((figure, peer), [])) >= 2

    def values(self, figure, peer, key, kind=None):
        """Of all rounds, or of those of one kind."""
        series = self.series.get((figure, peer, key))
        return [v for r, v in series.rounds.items() if v is not None and kind in (None, series.kinds[r])] if series else []

    def keys(self, figure, peer):
        return sorted(k for f, p, k in self.series if (f, p) == (figure, peer))

    def why_not(self, figure, peer):
        reasons = self.failures.get((figure, peer))
        return reasons[-1] if reasons else NOT_RUN

    def ratios(self, a, b, key, kind=None):
        """a and b are (figure, peer). One ratio per round in which both were measured, one right after the other, with the
        CPUs in places of one kind; or of just this kind."""
        first, second = self.series.get((*a, key)), self.series.get((*b, key))
        if not first or not second:
            return []
        both = [r for r in first.rounds if r in second.rounds and first.kinds[r] == second.kinds[r] and
                kind in (None, first.kinds[r])]
        return [first.rounds[r] / second.rounds[r] for r in both if first.rounds[r] and second.rounds[r]]

    def kinds(self, figure):
        """The kinds of places in which it was measured, sorted."""
        return sorted({k for (f, _, _), s in self.series.items() if f == figure for k in s.kinds.values() if k}, reverse=True)

    def derive_best(self, figure, name, peers, lower):
        """A peer that is, round by round, the best of several that were measured with the CPUs in places of one kind."""
        for key in self.keys(figure, peers[0]):
            found = [self.series.get((figure, peer, key)) for peer in peers]
            if not all(found):
                continue
            for r in set.intersection(*(set(s.rounds) for s in found)):
                values, kinds = [s.rounds[r] for s in found], {s.kinds[r] for s in found}
                if None not in values and len(kinds) == 1:
                    self.add(figure, name, r, {key: best(values, lower)}, kinds.pop())

    def as_json(self):
        series = [{"figure": f, "peer": p, "key": k, "rounds": s.rounds, "kinds": s.kinds} for (f, p, k), s in self.series.items()]
        failures = [{"figure": f, "peer": p, "reasons": r} for (f, p), r in self.failures.items()]
        return {"series": series, "failures": failures}


def best(values, lower):
    return min(values) if lower else max(values)


def median(values):
    return statistics.median(values)


def median_interval(values):
    """Where the median of what these are a sample of lies, with 95 % at least, whatever their distribution: two of the values themselves,
    as far from both ends as the sign test allows. None: they are too few, six at least."""
    n, tail, k = len(values), 0, 0
    while tail + math.comb(n, k) <= 0.025 * 2 ** n:
        tail += math.comb(n, k)
        k += 1
    return (sorted(values)[k - 1], sorted(values)[n - k]) if k else None
