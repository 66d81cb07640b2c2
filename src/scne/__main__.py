"""`python -m scne` is the command `scne`."""

from scne.cli import main

if __name__ == "__main__":
    main()
