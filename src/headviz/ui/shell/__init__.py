"""What all pages use: the view and its link, jobs, loaded models and data, figures and tables with downloads."""
