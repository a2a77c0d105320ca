"""Long work in the background: durable, cancellable, resumable, and on a cluster when one machine is not enough.

``record`` has the table of which state may follow which; ``registry`` decides; ``service`` is what people do with runs
and ``reading`` what they see of them; ``worker`` is the process that carries one; ``kinds`` lists what a run can be.
Nothing here loads torch until a worker works, and nothing ever loads streamlit.
"""
