"""What may be done for the heads that stay, without training: bias, refit, tune."""
