"""Measurements of the engine beside an independent implementation on the same machine."""
