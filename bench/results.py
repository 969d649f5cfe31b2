# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
# SPDX-FileCopyrightText: 2026 The Heddle authors
"""What has been measured, round by round, and what follows from it."""

import statistics


NOT_RUN = "not run"  # its part was not asked for


class Series:
    """The values of one figure of one peer for one size (or other key): one entry per round, None where it failed."""

    def __init__(self):
        self.rounds = {}

    def values(self):
        return [v for v in self.rounds.values() if v is not None]


class Results:
    def __init__(self):
        self.series = {}    # (figure, peer, key) -> Series
        self.failures = {}  # (figure, peer) -> reasons, in order
        self.hopeless = set()

    def add(self, figure, peer, round_number, values):
        for key, value in values.items():
            self.series.setdefault((figure, peer, key), Series()).rounds[round_number] = value

    def fail(self, figure, peer, reason, hopeless):
        self.failures.setdefault((figure, peer), []).append(reason)
        if hopeless:
            self.hopeless.add((figure, peer))

    def skip(self, figure, peer):
        """True when trying again would only cost time."""
        return (figure, peer) in self.hopeless or len(self.failures.get((figure, peer), [])) >= 2

    def values(self, figure, peer, key):
        series = self.series.get((figure, peer, key))
        return series.values() if series else []

    def keys(self, figure, peer):
        return sorted(k for f, p, k in self.series if (f, p) == (figure, peer))

    def why_not(self, figure, peer):
        reasons = self.failures.get((figure, peer))
        return reasons[-1] if reasons else NOT_RUN

    def ratios(self, a, b, key):
        """a and b are (figure, peer). One ratio per round in which both were measured, one right after the other."""
        first, second = self.series.get((*a, key)), self.series.get((*b, key))
        if not first or not second:
            return []
        both = [r for r in first.rounds if r in second.rounds]
        return [first.rounds[r] / second.rounds[r] for r in both if first.rounds[r] and second.rounds[r]]

    def as_json(self):
        series = [{"figure": f, "peer": p, "key": k, "rounds": s.rounds} for (f, p, k), s in self.series.items()]
        failures = [{"figure": f, "peer": p, "reasons": r} for (f, p), r in self.failures.items()]
        return {"series": series, "failures": failures}


def best(values, lower):
    return min(values) if lower else max(values)


def median(values):
    return statistics.median(values)
