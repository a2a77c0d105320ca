"""Recipes: what a page or a report shows, as the Python and the command that give it again.

A package of its own, because analyses, reports and the interface all make recipes and none of them may import another.
A recipe is a structure; ``structure`` alone writes it down, so names and texts are quoted in one place.
"""
