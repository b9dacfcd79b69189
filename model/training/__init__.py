"""How the weights in `assets/models/` were made: `python -m model.train`."""
