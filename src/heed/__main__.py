"""`python -m heed` is the command `heed`."""

from heed.cli.main import main

if __name__ == "__main__":
    main()
