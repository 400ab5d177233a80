"""Masked language modelling: an encoder that predicts masked pieces of a text from those around them."""
