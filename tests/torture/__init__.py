"""Tools that try to break scne: by hand for hours, in continuous integration for a fixed short time. See README.md."""
