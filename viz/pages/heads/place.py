"""Where the reader stands among the heads, and how a click moves there."""

from model.trace import KINDS, Head
from viz import view
from viz.view import View


def chosen(here: View) -> Head:
    return Head(here.kind, here.layer, here.head)


def go(head: Head) -> None:
    view.place(kind=head.kind, layer=head.layer + 1, head=head.head + 1, mean=False)


def go_to(places: list[list[int]]) -> None:
    """Follow a click on a marker [kind, layer, head]."""
    kind, layer, head = places[0]
    go(Head(KINDS[kind], layer, head))
