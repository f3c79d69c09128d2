"""`python -m tilelab` is the command `tilelab`."""

from tilelab.cli import main

if __name__ == "__main__":
    raise SystemExit(main())
