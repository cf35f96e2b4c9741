"""Renderers: the same claims and evidence always give the same bytes."""
