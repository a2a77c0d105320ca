"""How the demo models were trained, measured and packed: see train.py for the steps."""
