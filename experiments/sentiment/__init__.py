"""A second data set with unchanged defaults: Wizard texts by VADER sentiment."""
