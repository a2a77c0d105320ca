"""The dashboard: ``streamlit run app.py`` or ``headviz serve``. ``headviz.ui.shell.frame`` lists the pages."""

from headviz.ui.shell import frame

frame.run()
