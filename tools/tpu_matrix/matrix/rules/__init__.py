"""Rules that claims have to keep; importing the package registers all of them."""

from tpu_matrix.matrix.rules import evidence, hardware, identity, promise  # noqa: F401  registers
from tpu_matrix.matrix.rules.registry import RULES, Context, Rule, run_rules

__all__ = ["RULES", "Context", "Rule", "run_rules"]
