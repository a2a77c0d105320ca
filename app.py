"""The dashboard: ``streamlit run app.py`` or ``headviz serve``. The pages are listed in ``headviz.ui.shell.frame``."""

from headviz.ui.shell import frame

frame.run()
