"""The sizes that batches are padded to, so that a handful of graphs serve every batch."""

from bisect import bisect_left
from dataclasses import dataclass

# Eight rows fill the sublanes of a TPU register in float32.
_SMALLEST = 8


@dataclass(frozen=True)
class Buckets:
    """Ascending sizes; the last one is the largest batch there can be."""

    sizes: tuple[int, ...]

    @classmethod
    def up_to(cls, largest: int, *, growth: int) -> "Buckets":
        """Returns sizes that grow by a factor from 8 and end at `largest` exactly."""
        sizes = []
        size = _SMALLEST
        while size < largest:
            sizes.append(size)
            size *= growth
        return cls((*sizes, largest))

    def fit(self, count: int) -> int:
        """Returns the smallest size that holds `count`.

        Raises:
            ValueError: `count` is larger than every size.
        """
        index = bisect_left(self.sizes, count)
        if index == len(self.sizes):
            raise ValueError(f"bucket: {count} is above the largest size {self.sizes[-1]}")
        return self.sizes[index]
