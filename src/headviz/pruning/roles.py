"""The role of a record's model (as given, full and retrained, or pruned) and its names in tables and sentences."""

GIVEN, RETRAINED, PRUNED = "given", "retrained", "pruned"
NAMES = {GIVEN: "unpruned model", RETRAINED: "full θ0, retrained alike", PRUNED: "pruned"}
WORDS = {GIVEN: "the unpruned model", RETRAINED: "the full θ0 retrained alike"}  # in a sentence
