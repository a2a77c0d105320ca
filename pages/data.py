"""Data & model: what one looks at, and how to look at something else."""

import streamlit as st

from headviz.ui import frame

view = frame.begin()
st.title("Data & model")
