"""The output of a loud program: fast, with everything that is awkward in a log.

A file of its own, of the standard library alone: it runs as a job's program as well.
"""

import os
import sys

# Of each rank. From HELD on they come when a second word has been said.
LINES = 100_000
HELD = 70_000
# Longer than three of the pieces in which a line travels; the secret spans the first cut.
LONG_BYTES, LONG_EVERY, CUT_AT = 110_000, 25_000, 32_768
BLOCK = 500
AWKWARD = {
    100: b"no UTF-8: \xff\xfe, \xc3(, half a sign: \xe2\x82",
    200: b"NUL: \0, a bell: \a, colors: \x1b[31mred\x1b[0m",
    300: b"".join(b"\r%3d %% of the epoch" % (part * 10) for part in range(11)),
    400: b"the hub was given %(secret)s as its token",
    500: b"as on another system\r",
    600: "ends of lines elsewhere: \x0b \x0c \x1c \x85 \u2028 \u2029, a sign: \U0001f525".encode(),
    700: b"",
    800: b"  blanks stay  ",
}


def line(rank: int, number: int, secret: bytes) -> bytes:
    """Build a line of a rank, with its end."""
    name = b"rank %d line %d" % (rank, number)
    if number % LONG_EVERY == 0:
        before = name.ljust(CUT_AT - len(secret) // 2, b".") + secret
        return before.ljust(LONG_BYTES, b"-") + b"\n"
    awkward = AWKWARD.get(number % 1000)
    if awkward is None:
        return name + b" | loss %d.%04d | 181332 tokens/s\n" % divmod(number * 7919, 10_000)
    return awkward.replace(b"%(secret)s", secret) + b"\n"


def lines(rank: int, secret: bytes, first: int, last: int) -> bytes:
    """Build the lines with these numbers."""
    return b"".join(line(rank, number, secret) for number in range(first, last + 1))


def wait_for_a_word() -> None:
    """Wait until the witness, at the other end of file descriptor 3, sends a line."""
    while os.read(3, 1) != b"\n":
        pass


def main() -> None:
    """Print without a pause, except for the wait at HELD."""
    rank, secret = int(os.environ["SKYPILOT_NODE_RANK"]), os.environ["TOKEN"].encode()
    wait_for_a_word()
    for first in range(1, LINES + 1, BLOCK):
        if first == HELD + 1:
            wait_for_a_word()
        sys.stdout.buffer.write(lines(rank, secret, first, first + BLOCK - 1))
        sys.stdout.buffer.flush()


if __name__ == "__main__":
    main()
