"""Settings of parsers, and names of weights, as they were written in earlier versions.

All settings stood side by side then, those of parts that a parser does not have among them. Such
parsers, runs, records and recipes are read for ever, and the short names stay valid in recipes and
on the command line.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from typing import Any

from spmrl_bench.nn.encoders import ENCODERS
from spmrl_bench.nn.inputs import INPUTS

#: Parts that a parser may have or not: a table of settings, of which ``use`` says whether.
OPTIONAL = ("label_attention", "tagger")

#: The old names of the settings of each part, with today's where that is another.
TABLES = {
    "charlstm": "d_form=width d_char d_char_lstm=d_states char_dropout form_dropout=dropout",
    "word": "d_word=width max_words word_dropout=dropout word_vectors=vectors",
    "tag": "d_tag=width tag_dropout=dropout",
    "charconcat": "d_form=width char_boundaries=boundaries form_dropout=dropout",
    "vectors": "d_vectors=width word_dropout=dropout vectors=file",
    "elmo": (
        "d_elmo=width form_dropout=dropout elmo_weights=weights elmo_options=options "
        "elmo_dropout=mix_dropout"
    ),
    "transformer": (
        "d_transformer=width form_dropout=dropout transformer=name transformer_revision=revision "
        "transformer_pooling=pooling transformer_frozen=frozen"
    ),
    "hidden_states": (
        "d_hidden_states=width form_dropout=dropout transformer=name transformer_revision=revision "
        "transformer_pooling=pooling"
    ),
    "attention": (
        "heads d_kv max_positions position position_table position_only_layers input_norm "
        "forward_features relaxed_window d_ff attention_dropout relu_dropout attention_scale "
        "layers residual_dropout layer_norm matrices attention_start=start "
        "attention_window=window"
    ),
    "lstm": "layers residual_dropout=dropout recurrent_dropout=masks",
    "gru": "layers residual_dropout=dropout recurrent_dropout=masks",
    "label_attention": (
        "d_ff attention_dropout relu_dropout attention_scale residual_dropout layer_norm "
        "label_heads=heads label_d_kv=d_kv label_d_proj=d_proj label_queries=queries "
        "label_outputs=outputs label_matrices=matrices label_feed_forward=feed_forward "
        "label_residual_dropout=head_dropout label_attention=use"
    ),
    "tagger": "predict_tags=use d_tag_hidden=d_hidden tag_loss_weight=loss_weight tagger=use",
    "scorer": "layer_norm d_label_hidden=d_hidden",
    "dependencies": (
        "d_arc d_relation biaffine_dropout=dropout arc_loss_weight relation_loss_weight"
    ),
    "decoder": (
        "d_decoder=d_hidden decoder_layers=layers d_action d_attention decoder_dropout=dropout "
        "attention_layers pushed_words removed_words"
    ),
}

#: Where the value of an old setting belongs: ``table.key`` of each part that reads it.
FLAT: dict[str, tuple[str, ...]] = {"lexical": ("inputs",)}
for _table, _names in TABLES.items():
    for _old, _, _new in (_name.partition("=") for _name in _names.split()):
        FLAT[_old] = (*FLAT.get(_old, ()), f"{_table}.{_new or _old}")

#: Parts of the names of weights of inputs, and what they are today.
_RENAMED = {"words": "word.embedding.", "tags": "tag.embedding.", "char_lstm": "charlstm."}


def current_name(name: str) -> str:
    """Return the name that a weight has today; that of a moment is ``what/weight``."""
    return re.sub(
        r"(?<![^/])lexical\.(words|tags|char_lstm|coded)\.",
        lambda old: f"lexical.{_RENAMED.get(old[1], '')}",
        name,
    )


def places_of(key: str, tables: Collection[str]) -> list[str]:
    """Return where an old setting belongs, of the tables that there are."""
    places = FLAT.get(key, ())
    return [place for place in places if "." not in place or place.partition(".")[0] in tables]


def in_tables(settings: Mapping[str, Any], tables: Collection[str]) -> dict[str, Any]:
    """Return a layer of a recipe with every old name in those of the tables that it concerns.

    Tables win over old names beside them; a name that concerns none of them stays.
    """
    found: dict[str, Any] = {}
    for key, value in settings.items():
        if isinstance(value, Mapping):
            found.setdefault(key, {}).update(value)
        elif places := places_of(key, tables):
            for table, _, name in (place.rpartition(".") for place in places):
                (found.setdefault(table, {}) if table else found).setdefault(name, value)
        else:
            found[key] = value
    return found


def chosen(layer: Mapping[str, Any]) -> dict[str, Any]:
    """Return the settings of a parser of a layer with tables for all parts, in which ``inputs`` are
    names and ``encoder`` is one."""
    names, encoder = layer.get("inputs", ()), layer.get("encoder", "attention")
    inputs = INPUTS.names()  # in the order in which they are summed
    parts = {*inputs, *ENCODERS.names(), *OPTIONAL}
    found = {key: value for key, value in layer.items() if key not in parts}
    found["inputs"] = {name: layer.get(name, {}) for name in inputs if name in names}
    found["encoder"] = {encoder: layer.get(encoder, {})}
    for name in OPTIONAL:
        table = dict(layer.get(name, {}))
        found[name] = table if table.pop("use", False) else None
    return found


def nested(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Return the settings of a saved parser, a run or a record as they are written today."""
    own = dict(settings)
    if not own.get("lexical"):  # of a kind without inputs, or of today
        own.pop("lexical", None)
        return own
    if "charconcat" in own["lexical"]:
        own.setdefault("char_boundaries", "spelt")  # as it was before there was the key
    for name in ("vectors", "transformer"):  # files, and tables today
        if own.get(name, "") is None:
            del own[name]
    # Where there is no scorer, layer_norm is no setting of it.
    absent = set() if "d_label_hidden" in own else {"scorer"}
    return chosen(in_tables(own, TABLES.keys() - absent))


def dotted(layer: Mapping[str, Any]) -> dict[str, Any]:
    """Return the settings of tables, and those beside them, by dotted key."""
    return {
        f"{key}.{name}" if name else key: each
        for key, value in layer.items()
        for name, each in (value.items() if isinstance(value, Mapping) else [("", value)])
    }


def leaves(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Return the settings of a parser by dotted key, as recipes name them: ``inputs`` are names,
    ``encoder`` is one, and ``tagger.use`` says whether there is a tagger."""
    layer: dict[str, Any] = {}
    for key, value in settings.items():
        if key == "inputs" and isinstance(value, Mapping):
            # In the order of the registry: a record has them in that of their names.
            layer |= {**value, key: [*filter(value.__contains__, INPUTS.names())]}
        elif key == "encoder" and isinstance(value, Mapping):
            layer |= {**value, key: next(iter(value), None)}
        elif key in OPTIONAL:
            layer[key] = {"use": value is not None, **(value or {})}
        else:
            layer[key] = value
    return dotted(layer)


def short(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Return settings by dotted key under the old names that say exactly the same: each where all
    of its places that the parser has have one value."""
    found = dict(settings)
    for key, places in FLAT.items():
        values = [found[place] for place in places if place in found]
        if values and all(value == values[0] for value in values):
            for place in places:
                found.pop(place, None)
            found[key] = values[0]
    return found
