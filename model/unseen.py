"""Letters and marks that cannot be seen: fillers, joiners and selectors, which no category tells apart.

Alone they would be a piece with nothing to be seen in it.
"""

from itertools import chain

# First and last of each run of Default_Ignorable_Code_Point outside of Cc, Cf, Cs, Co and Cn.
_RUNS = (
    *((0x034F, 0x034F), (0x115F, 0x1160), (0x17B4, 0x17B5), (0x180B, 0x180F), (0x3164, 0x3164)),
    *((0xFE00, 0xFE0F), (0xFFA0, 0xFFA0), (0xE0100, 0xE01EF)),
)
IGNORABLE = frozenset(map(chr, chain.from_iterable(range(first, last + 1) for first, last in _RUNS)))
