"""The project's own components: Python, JavaScript and style sheet side by side."""
