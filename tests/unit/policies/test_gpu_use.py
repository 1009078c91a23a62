"""The GPU use of all hosts over time."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime, timedelta

from jobs.policies.gpu_use import MOST_POINTS, GpuSample, Use, columns_of, with_sample

T0 = datetime(2030, 1, 1, tzinfo=UTC)
LATE = timedelta(seconds=150)


def after(samples: Iterable[tuple[float, Sequence[float | None]]]) -> Use:
    use = None
    for at_s, uses in samples:
        use = with_sample(use, GpuSample(T0 + timedelta(seconds=at_s), uses), LATE)
    assert use is not None
    return use


def test_reports_of_all_hosts_within_half_a_minute_are_one_point():
    use = after([(0, [90, 100]), (5, [40, 60]), (31, [80])])
    assert columns_of(use.points) == {
        "t": [T0.timestamp(), T0.timestamp() + 30],
        "mean": [72.5, 80],
        "lowest": [50, 80],
    }
    assert (use.now, use.mean, use.lowest) == (80, 75, 60)


def test_a_long_history_keeps_few_points_and_its_mean():
    use = after((10 * n, [float(n % 2 * 100)]) for n in range(6 * 60 * 24))
    assert MOST_POINTS / 3 < len(use.points) <= MOST_POINTS
    assert use.mean is not None and abs(use.mean - 50) < 1
    # The lowest of each moment, not the lowest ever seen.
    assert after((10 * n, [50.0 + n % 3]) for n in range(5000)).lowest == 50


def test_gpus_are_idle_since_the_last_report_of_work():
    use = after([(0, [90.0]), (60, [50.0]), (120, [1.0, 4.9]), (180, [0.0])])
    assert use.idle_since(T0 + timedelta(seconds=200), LATE) == T0 + timedelta(seconds=60)
    assert after([(0, [0.0]), (60, [7.0])]).idle_since(T0 + timedelta(seconds=70), LATE) is None


def test_unknown_use_is_never_taken_for_idleness():
    soon = T0 + timedelta(seconds=70)
    assert after([(0, [0.0]), (60, [0.0, None])]).idle_since(soon, LATE) is None
    silent = after([(0, [50.0]), (60, [0.0])])
    assert silent.idle_since(soon, LATE) is not None
    assert silent.idle_since(soon + LATE, LATE) is None
    # Nothing is known of the time without reports.
    gap = after([(0, [50.0]), (600, [0.0]), (660, [0.0])])
    assert gap.idle_since(T0 + timedelta(seconds=670), LATE) == T0 + timedelta(seconds=600)


def test_gpus_that_do_not_report_their_use_have_no_points():
    use = after([(0, [None, None])])
    assert (use.now, use.mean, use.points) == (None, None, [])
