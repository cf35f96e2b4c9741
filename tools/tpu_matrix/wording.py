"""Phrases that pages, the terminal and findings share."""


def counted(number: int, noun: str) -> str:
    """Returns a number with its noun, as in `1 chip` or `4 chips`."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"
