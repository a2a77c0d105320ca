"""What the model of a record is: the one given, the full one trained anew, or a pruned one; and what it is called."""

GIVEN, RETRAINED, PRUNED = "given", "retrained", "pruned"
NAMES = {GIVEN: "θ* as given", RETRAINED: "full θ0, retrained alike", PRUNED: "pruned"}
WORDS = {GIVEN: "the model as given, θ*", RETRAINED: "the full θ0 retrained alike"}  # in a sentence
