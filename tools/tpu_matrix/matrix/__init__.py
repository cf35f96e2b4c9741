"""Claims: the typed model, loading with positions, rules, identity, command and status."""
