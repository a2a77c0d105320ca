"""The dashboard's own parts: the only package that imports streamlit."""
