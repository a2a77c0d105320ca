"""How the translation demo was made."""
