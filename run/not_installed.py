"""What `pip install .` is told, as a build backend: nothing is installed."""

raise SystemExit("the clone is the program: run `make .venv/installed` in it, see README.md")
