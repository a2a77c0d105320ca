"""The dashboard: ``streamlit run app.py`` or ``headviz serve``. The pages are listed in ``headviz.ui.frame``."""

from headviz.ui import frame

frame.run()
