"""`python -m shakedown` is the command."""

from shakedown.cli import main

main()
