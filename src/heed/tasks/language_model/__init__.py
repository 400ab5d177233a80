"""Language modelling: a text in, a model of the next token out."""
