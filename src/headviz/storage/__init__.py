"""What is written to disk: the folder it lies in, the cache of number tables, tables as files."""
