"""How results are shown: what the terminal, pages, reports and notebooks share.

Not named ``show``, because ``headviz.show`` is a public function.
"""
