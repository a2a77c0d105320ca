"""Six more analyses: two data sets, checkpoints of a training, pairs of heads, what heads look at, one head's map."""

from ...plugins import Command

ANALYSES = "headviz.extras.analyses.catalogue:ANALYSES"
COMMANDS = [
    Command(
        "roles",
        "what each head looks at: the token before, the same word, …",
        "headviz.commands.analyse",
        after="grade",
    )
]
NAMES = {name: f"{__name__}.{name}" for name in ("cross_dataset", "dynamics", "interactions", "redundant", "roles")}
