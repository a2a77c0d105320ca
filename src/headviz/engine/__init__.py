"""The engine for long work: a job says what can be done next, the engine has it done and keeps the results.

``job`` is the protocol that every kind of run follows; ``execution`` holds a job's state and does its pieces. It stands
below the rooms whose jobs it runs, so that a Python call, a worker and a cluster go the same way.
"""
