"""The figures and tables of the papers, redrawn, each with the claims it makes checked."""
