"""The support matrix: claims in git, evidence of runs, and statuses derived from both."""

__version__ = "0.1.0"
