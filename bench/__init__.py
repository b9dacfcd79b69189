"""Every performance figure that the README states: `python -m bench`."""
