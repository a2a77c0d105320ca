"""One file per kind of run; the table is in ``headviz.runs.kinds``."""
