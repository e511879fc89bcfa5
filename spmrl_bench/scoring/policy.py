"""What a bracket score does where the published conventions throw sentences away.

Parameter files cannot say what happens to a sentence without a parse, or to one whose full
stop got another tag; in EVALB such sentences silently leave the score. Whoever wants them in
says so here, and the signature of the score says it too.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class MissingParse(StrEnum):
    """What a test tree without words stands for.

    ``SKIP`` leaves the sentence out of every figure, as both C programs do, and the report
    says so. ``COUNT`` scores it as a tree without brackets: all gold brackets are missed and
    all tags wrong. That is the option ``-X`` of EVALB_SPMRL as it was meant. The program itself
    misses far more brackets than gold has: for each gold bracket one, and one more for each
    ``DELETE_LABEL`` of the parameter file that it does *not* have (so 6 for an ``NP`` under
    ``spmrl``). Only the output in EVALB's own format repeats that.
    """

    SKIP = "skip"
    COUNT = "count"


class Punctuation(StrEnum):
    """Whose tags decide which words are removed, where the parameter file removes any.

    ``BY_TAG``: each side by its own tags, as EVALB does; a full stop with another tag makes
    the sides differ in length, and the sentence is lost. ``BY_GOLD``: the positions of gold's
    punctuation are removed on both sides, whatever the parser tagged there (empty elements
    still go by tag, since a parser has none). No quotation mark needs to be put back then.
    """

    BY_TAG = "by-tag"
    BY_GOLD = "by-gold"


@dataclass(frozen=True, slots=True)
class Policy:
    """Both choices; the defaults are those of the published scores."""

    missing_parse: MissingParse = MissingParse.SKIP
    punctuation: Punctuation = Punctuation.BY_TAG


PUBLISHED = Policy()
