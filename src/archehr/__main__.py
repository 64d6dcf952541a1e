"""`python -m archehr` is the command."""

from archehr.cli import main

if __name__ == "__main__":
    main()
