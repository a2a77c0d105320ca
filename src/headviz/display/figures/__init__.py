"""Figures, in one style. No streamlit: reports and notebooks draw with the same functions."""
