"""Names of version 0.1 that still work for one version, with a warning that says the new one."""
