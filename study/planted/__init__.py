"""A family of small models whose heads have parts that are known, to grade head scores on: `README.md`."""
