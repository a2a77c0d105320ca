"""Resumable fine-tuning of full and pruned models, and their recipes."""
