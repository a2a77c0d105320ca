"""How what is shipped was made. Run from a checkout; not part of the package."""
