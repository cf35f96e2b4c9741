"""Compilation: where executables persist, and how many compilations there were."""
