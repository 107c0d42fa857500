"""The layout of the arrays of the compiled scan, for the code that fills them and the code that reads them.

This module has only plain numbers, so that the tables can be built without loading the compiler.
"""

from __future__ import annotations

ALL_BITS = (1 << 64) - 1
MULTIPLIER = 0x9E3779B97F4A7C15
# Columns of the slots of the hash table. A slot with the entry ALL_BITS is empty.
KEY, ENTRY = range(2)
SLOT_SHIFT = 20
# Columns of the entries. They are one array, because each further array would cost reference counting.
NEXT, TEXT, LENGTH, IS_PREFIX, MASK, NODE, EXACT = range(7)
ENTRY_COLUMNS = 7
# Columns of the edges of the phrase trie.
FROM, BY, TO, ENDS = range(4)
EDGE_COLUMNS = 4
# The filter has 2^16 bits: 1024 words of 64, chosen by the upper bits of the hash.
FILTER_WORDS = 1024
FILTER_WORD_SHIFT = 54
FILTER_BIT_SHIFT = 48
FILTER_BIT_MASK = 63
# This number of tokens means that the plain loop must count the document.
NEEDS_REFERENCE = -1
# The scan reads whole blocks, so this many bytes must follow the last text.
READ_AHEAD = 64
