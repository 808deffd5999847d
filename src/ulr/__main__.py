"""`python -m ulr` is the command line."""

from ulr.cli import main

main()
