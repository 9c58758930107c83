"""Means with an interval, and differences of pairs."""

from collections.abc import Sequence
from dataclasses import dataclass
from random import Random
from statistics import fmean

RESAMPLES = 2000


@dataclass(frozen=True)
class Estimate:
    """A mean, its 95 % bootstrap interval, and the number of values."""

    mean: float
    low: float
    high: float
    n: int


def estimate(values: Sequence[float]) -> Estimate:
    """Estimate the mean of values, of which there is at least one.

    The interval is the middle 95 % of the means of samples that are drawn from the values, with
    repetition. With few values it is too narrow.
    """
    random = Random(0)
    means = sorted(fmean(random.choices(values, k=len(values))) for _ in range(RESAMPLES))
    cut = RESAMPLES // 40
    return Estimate(fmean(values), means[cut], means[-cut - 1], len(values))
