"""Evidence: the record of one run, the checks that admit it, and the append-only store."""
