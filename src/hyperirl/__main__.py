"""`python -m hyperirl` is the command `hyperirl`."""

from hyperirl.cli import main

if __name__ == "__main__":
    main()
