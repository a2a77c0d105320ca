"""The engine for long work: a job says what can be done next, the engine does it and keeps what is done.

``job`` is the protocol that every kind of run follows, ``here`` runs a job in this process. It stands below the rooms
whose jobs it runs, so that a Python call and a worker of ``headviz.runs`` go the same way.
"""
