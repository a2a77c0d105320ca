"""What a Jupyter notebook shows: results as small HTML, figures, and the dashboard in a frame."""
