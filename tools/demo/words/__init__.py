"""Word lists of the demo corpus: plain tables, one file per part of speech."""
