"""What every part needs and no library gives: strict recipes, whole files, progress, plain errors."""
