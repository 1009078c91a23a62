"""Text for the amounts that limits count."""

from __future__ import annotations

from jobs.scheduling.limits import GPUS, JOBS, NODES, USD_PER_HOUR


def counted(what: str, amount: float) -> str:
    """Format an amount, such as `1 node`, `16 GPUs (H100)`."""
    if what == USD_PER_HOUR:
        return f"{usd(amount)} an hour"
    number = number_words(amount)
    if what == NODES:
        return f"{number} node" if amount == 1 else f"{number} nodes"
    if what == JOBS:
        return f"{number} running job" if amount == 1 else f"{number} running jobs"
    word = "GPU" if amount == 1 else "GPUs"
    kind = type_of(what)
    return f"{number} {word} ({kind})" if kind else f"{number} {word}"


def most_at_once(what: str, cap: float) -> str:
    """Format a cap as text that follows its owner's name, such as `may run 1 job at once`."""
    if what == JOBS:
        return f"may run {number_words(cap)} {'job' if cap == 1 else 'jobs'} at once"
    return f"may have {counted(what, cap)} at once"


def usd(amount: float) -> str:
    """Format an amount of money, such as `$1,234.50`, with more decimals below a cent."""
    is_small = 0 < amount < 0.01  # noqa: PLR2004 - a cent
    return f"${amount:.4f}" if is_small else f"${amount:,.2f}"


def type_of(what: str) -> str:
    """Return the type of GPUs that is counted; empty: any type, or no GPUs."""
    return what.removeprefix(f"{GPUS}:") if what.startswith(f"{GPUS}:") else ""


def number_words(amount: float) -> str:
    """Format a number, without decimals if it is whole."""
    return str(int(amount)) if float(amount).is_integer() else f"{amount:.2f}"
