"""The pages: controls, address, figures, words. Only `viz.cache` knows more of `model` than its trace."""
