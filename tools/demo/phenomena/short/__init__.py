"""The same abilities in short plain sentences, as somebody types them: present and progressive, bare and indefinite.

No settings, no asides. Rules here take the same arguments as those of the folder above.
"""

from .asserted import negation, veridical
from .counted import number, quantifier
from .meant import antonym, hypernym, synonym
from .ordered import comparative, spatial, temporal
from .told import conjunction, relative_clause, role_swap

SHORT = {
    "synonym": synonym,
    "hypernym": hypernym,
    "antonym": antonym,
    "negation": negation,
    "veridical": veridical,
    "quantifier": quantifier,
    "number": number,
    "role-swap": role_swap,
    "conjunction": conjunction,
    "relative-clause": relative_clause,
    "temporal": temporal,
    "spatial": spatial,
    "comparative": comparative,
}
