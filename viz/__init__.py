"""The pages: controls and URL, figures, tables, words. Of the model it knows `model.trace`; `viz.cache` knows the rest."""
