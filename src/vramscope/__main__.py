"""`python -m vramscope` is `vramscope`."""

from vramscope.cli import main

if __name__ == "__main__":
    main()
