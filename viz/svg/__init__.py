"""Pictures as vector graphics: one writer for maps, and for the curves that plotly draws in a browser."""

from viz.svg.maps import DRAWINGS, MOST, Drawing, Shot, TooLargeError, altered, caption, draw

__all__ = ["DRAWINGS", "MOST", "Drawing", "Shot", "TooLargeError", "altered", "caption", "draw"]
