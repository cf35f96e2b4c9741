"""Set-up and checks of this repository."""
