"""Rules that claims have to keep; importing the package registers all of them."""

from tpu_matrix.matrix.rules import hardware, identity, promise  # noqa: F401  registers
from tpu_matrix.matrix.rules.registry import RULES, Rule, run_rules

__all__ = ["RULES", "Rule", "run_rules"]
