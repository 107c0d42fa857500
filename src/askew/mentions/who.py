"""Who a word of a lexicon points to in a text.

``real``       one specific real person, or several; pronouns and kin words that point to such a person count
``fictional``  a character of a story, film, game, song or myth
``generic``    no specific person: anyone, a role, people in general
``name``       part of a title, brand, place or team
``other``      no person: a ship, an animal, another meaning, an artifact of the text such as a clipped "The"
"""

from __future__ import annotations

WHO = ("real", "fictional", "generic", "name", "other")
