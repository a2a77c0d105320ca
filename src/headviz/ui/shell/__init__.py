"""What surrounds every page: the view and its link, jobs, models and data at hand, figures with their exports."""
