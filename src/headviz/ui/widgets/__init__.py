"""The project's own pieces of page: Python, JavaScript and style sheet side by side."""
