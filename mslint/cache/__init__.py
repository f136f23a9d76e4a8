"""Findings kept from one run to the next, as long as all that they rest on stays as it is."""
