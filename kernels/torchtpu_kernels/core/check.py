"""Argument checks whose message names every problem of a call at once."""


class ShapeError(ValueError):
    """Raised when the arguments of an operation do not fit together."""


class Problems:
    """Collects the problems of one call and raises them together.

    Example:
        >>> problems = Problems("paged_attention")
        >>> problems.require(3 % 2 == 0, "q has 3 heads; give a multiple of the 2 KV heads")
        >>> problems.raise_if_any()
        Traceback (most recent call last):
        ...
        torchtpu_kernels.core.check.ShapeError: paged_attention: q has 3 heads; give a ...
    """

    def __init__(self, operation: str) -> None:
        self._operation = operation
        self._found: list[str] = []

    def require(self, condition: bool, sentence: str) -> None:
        """Notes `sentence` (what was found; what to do) unless `condition` holds."""
        if not condition:
            self._found.append(sentence)

    def raise_if_any(self) -> None:
        """Raises one ShapeError that lists every noted problem."""
        if self._found:
            raise ShapeError(f"{self._operation}: " + " | ".join(self._found))
