"""Tools that make files to break scne, and see that none does. See the README.md beside this folder."""
