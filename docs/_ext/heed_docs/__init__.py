"""Extensions of Sphinx for these pages: references from the code, and mathematics without a script."""
