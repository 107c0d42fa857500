"""The Lovins stemmer (Development of a stemming algorithm, Mechanical Translation 11, 1968).

The stemmer removes the longest of 294 endings with a condition that the rest of the word meets; then it respells the
end of the stem. Endings, conditions and respellings are those of the paper's appendices in Snowball's version: the
second "end -> ens" is read as "ent -> ens", and the ending "elity" (other copies of the table have "elily") is kept.
"""

from __future__ import annotations

import re

# The conditions by name: the minimum length of the stem, and a pattern for its end.
_CONDITIONS = {
    "A": (2, ""), "B": (3, ""), "C": (4, ""), "D": (5, ""), "E": (2, "[^e]"), "F": (3, "[^e]"), "G": (3, "f"),
    "H": (2, "t|ll"), "I": (2, "[^oe]"), "J": (2, "[^ae]"), "K": (3, "l|i|u.e"), "L": (2, "[^uxs]|os"),
    "M": (2, "[^acem]"), "N": (3, "[^s]..|...."), "O": (2, "l|i"), "P": (2, "[^c]"), "Q": (3, "[^ln]"),
    "R": (2, "n|r"), "S": (2, "dr|[^t]t"), "T": (2, "s|[^o]t"), "U": (2, "l|m|n|r"), "V": (2, "c"), "W": (2, "[^su]"),
    "X": (2, "l|i|u.e"), "Y": (2, "in"), "Z": (2, "[^f]"), "AA": (2, "d|f|ph|th|l|er|or|es|t"),
    "BB": (3, "(?<!met)(?<!ryst)"), "CC": (2, "l"),
}  # fmt: skip
_ENDINGS = {
    "A": """
        arizability antialness arisations arizations entialness antaneous antiality arisation arization ativeness
        entations entiality entialize entiation ionalness istically itousness izability izational ableness arizable
        entation entially eousness ibleness icalness ionalism ionality ionalize iousness izations lessness ability
        aically alities aristic arizing ateness atingly atively ativism encible entally entials entiate entness fulness
        ibility icalism icalist icality icalize icianry ination ingness ionally isation ishness istical iteness iveness
        ivistic ivities izement oidally ousness aceous alness ancial ancies ariser arized arizer atable atives efully
        encies encing ential entist eously ialist iality ialize ically icance icians icists ifully ionals ioning ionist
        iously istics lessly nesses oidism acies acity aical alist ality alize arial aries arily arize aroid ately ative
        ators atory ehood eless elity ement enced ences ental ently fully ially icant ician icide icism icist icity
        iedly ihood inate iness ional ioned ished istic ities itous ively ivity oidal oides otide ously able ably aric
        ates ator eful eity ence ency eous hood ials ians ible ibly ical iers iful ious ists less lily ness ogen ward
        wise yish acy aic ata ate ese ful ial ian ics ied ier ily ist ity ium ive oid ous ae ia ic is 's s' a e i o
    """,
    "B": """
        alistically izationally ationally alistic ational acious ancing ations aging alism anced ances arity ation ingly
        ages ally ance ancy ants atic ions isms ying age ant ism as ly y
    """,
    "C": "allically enting antic ented ent ish",
    "D": "ionate",
    "E": "eableness ariness elihood izable ature eness ening edly ened enly ely ene ery ed es",
    "F": "ization izers izing ized izer ary ize en",
    "G": "ication action",
    "H": "itic",
    "I": "ating idine ated",
    "J": "inism",
    "K": "arly",
    "L": "ides ide",
    "M": "ines ine",
    "N": "ings ing",
    "O": "ars",
    "P": "ies",
    "Q": "ion",
    "R": "one yl",
    "S": "on",
    "T": "or",
    "U": "um",
    "V": "us",
    "W": "s",
    "X": "ar",
    "Y": "early ealy eal ear",
    "Z": "eature",
    "AA": "ite",
    "BB": "allic als al",
    "CC": "inity",
}
_DOUBLES = frozenset(letter * 2 for letter in "bdglmnprst")
# The end of a stem: its respelling, and the letters after which it is not respelled.
_RESPELLED = {
    "iev": ("ief", ""), "uct": ("uc", ""), "umpt": ("um", ""), "rpt": ("rb", ""), "urs": ("ur", ""),
    "istr": ("ister", ""), "metr": ("meter", ""), "olv": ("olut", ""), "ul": ("l", "aio"), "bex": ("bic", ""),
    "dex": ("dic", ""), "pex": ("pic", ""), "tex": ("tic", ""), "ax": ("ac", ""), "ex": ("ec", ""), "ix": ("ic", ""),
    "lux": ("luc", ""), "uad": ("uas", ""), "vad": ("vas", ""), "cid": ("cis", ""), "lid": ("lis", ""),
    "erid": ("eris", ""), "pand": ("pans", ""), "end": ("ens", "s"), "ond": ("ons", ""), "lud": ("lus", ""),
    "rud": ("rus", ""), "her": ("hes", "pt"), "mit": ("mis", ""), "ent": ("ens", "m"), "ert": ("ers", ""),
    "et": ("es", "n"), "yt": ("ys", ""), "yz": ("ys", ""),
}  # fmt: skip

_CHECKS = {name: (least, re.compile(f"(?:{end})$", re.DOTALL)) for name, (least, end) in _CONDITIONS.items()}
ENDINGS = {ending: _CHECKS[name] for name, endings in _ENDINGS.items() for ending in endings.split()}
_LONGEST = max(map(len, ENDINGS))


def stem(word: str) -> str:
    """The stem of a lower-cased word."""
    word = _without_ending(word)
    if word[-2:] in _DOUBLES:
        word = word[:-1]
    return _respelled(word)


def _without_ending(word: str) -> str:
    for length in range(min(_LONGEST, len(word) - 2), 0, -1):
        condition = ENDINGS.get(word[-length:])
        rest = word[:-length]
        if condition is not None and len(rest) >= condition[0] and condition[1].search(rest):
            return rest
    return word


def _respelled(word: str) -> str:
    for length in range(4, 1, -1):
        if word[-length:] in _RESPELLED:
            new, not_after = _RESPELLED[word[-length:]]
            rest = word[:-length]
            return word if rest[-1:] and rest[-1] in not_after else rest + new
    return word
