"""The meaning of cron expressions, with the days as the portal reads them."""

from __future__ import annotations

from jobs.policies.cron_meaning import meaning_of
from tests.each_case import check_each


def test_an_expression_is_described_with_the_days_on_which_it_comes() -> None:
    def check(cron: str, meaning: str) -> None:
        assert meaning_of(cron) == meaning

    check_each(
        [
            ("30 2 * * 1-5", "At 02:30, Monday through Friday"),
            ("@daily", "At 00:00, every day"),
            ("0 9,17 * jan-mar *", "At 09:00 and 17:00, every day, January through March"),
            ("*/15 9-17 * * *", "Every 15 minutes, between 09:00 and 17:59"),
            ("0 * * * *", "Every hour"),
            ("@yearly", "At 00:00, on day 1 of the month, in January"),
            # Both are restricted: either one.
            ("0 0 1,15 * 5-6", "At 00:00, on day 1 and 15 of the month or Friday through Saturday"),
            # One begins with *: both at once.
            ("0 0 */2 * 1", "At 00:00, every 2 days from day 1 of the month, if also on Monday"),
            ("0 0 1 * */2", "At 00:00, on day 1 of the month, if also every 2 days of the week"),
            ("0 12 */2 * *", "At 12:00, every 2 days from day 1 of the month"),
            ("0 0 L * *", "At 00:00, on the last day of the month"),
            ("0 0 * * 1#2", "At 00:00, on the second Monday of the month"),
            ("0 0 * jul,aug mon", "At 00:00, on Monday, in July and August"),
            # A step whose last interval is shorter is not every seven minutes.
            (
                "*/7 * * * *",
                "At 0, 7, 14, 21, 28, 35, 42, 49, and 56 minutes past the hour",
            ),
            ("0 */7 * * *", "At 00:00, 07:00, 14:00 and 21:00, every day"),
            # None is better than a false one.
            ("*/90 * * * *", ""),
            ("0 0 1 */13 *", ""),
            ("0 0 * * 2L,3#2", ""),
            ("0 0 15,L * *", ""),
        ],
        check,
    )


def test_hours_are_those_of_a_clock_with_12_hours_if_requested() -> None:
    def check(cron: str, meaning: str) -> None:
        assert meaning_of(cron, has_half_days=True) == meaning

    check_each(
        [
            ("30 14 * * 1-5", "At 2:30 PM, Monday through Friday"),
            ("@daily", "At 12:00 AM, every day"),
            ("*/15 9-17 * * *", "Every 15 minutes, between 9:00 AM and 5:59 PM"),
        ],
        check,
    )
