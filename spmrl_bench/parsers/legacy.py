"""Settings of parsers as they were written before parts had tables of their own.

Saved parsers, runs, records and recipes of that time have all settings side by side, those of
parts that a parser does not have among them. They are read for ever, and the short names stay
valid on the command line.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

INPUTS = ("charlstm", "word", "tag", "charconcat", "vectors", "elmo", "transformer")
ENCODERS = ("attention", "lstm", "gru")
#: Parts that a parser may have or not: a table of settings, of which ``use`` says whether.
OPTIONAL = ("label_attention", "tagger")

_FORM = ("charlstm", "charconcat", "elmo", "transformer")
_OF_ATTENTION = (
    "heads",
    "d_kv",
    "max_positions",
    "position",
    "position_table",
    "position_only_layers",
    "input_norm",
    "forward_features",
    "relaxed_window",
)

#: Where the value of an old setting belongs: ``table.key`` of each part that reads it.
FLAT: Mapping[str, tuple[str, ...]] = {
    **{key: (f"attention.{key}",) for key in _OF_ATTENTION},
    **{
        key: (f"attention.{key}", f"label_attention.{key}")
        for key in ("d_ff", "attention_dropout", "relu_dropout", "attention_scale")
    },
    "layers": ("attention.layers", "lstm.layers", "gru.layers"),
    "residual_dropout": (
        "attention.residual_dropout",
        "label_attention.residual_dropout",
        "lstm.dropout",
        "gru.dropout",
    ),
    "recurrent_dropout": ("lstm.masks", "gru.masks"),
    "layer_norm": ("attention.layer_norm", "label_attention.layer_norm", "scorer.layer_norm"),
    "matrices": ("attention.matrices",),
    "attention_start": ("attention.start",),
    "attention_window": ("attention.window",),
    "label_heads": ("label_attention.heads",),
    "label_d_kv": ("label_attention.d_kv",),
    "label_d_proj": ("label_attention.d_proj",),
    "label_queries": ("label_attention.queries",),
    "label_outputs": ("label_attention.outputs",),
    "label_matrices": ("label_attention.matrices",),
    "label_feed_forward": ("label_attention.feed_forward",),
    "label_residual_dropout": ("label_attention.head_dropout",),
    "predict_tags": ("tagger.use",),
    "d_tag_hidden": ("tagger.d_hidden",),
    "tag_loss_weight": ("tagger.loss_weight",),
    "d_word": ("word.width",),
    "d_tag": ("tag.width",),
    "d_form": ("charlstm.width", "charconcat.width"),
    "d_vectors": ("vectors.width",),
    "d_elmo": ("elmo.width",),
    "d_transformer": ("transformer.width",),
    "max_words": ("word.max_words",),
    "d_char": ("charlstm.d_char",),
    "d_char_lstm": ("charlstm.d_states",),
    "char_dropout": ("charlstm.char_dropout",),
    "char_boundaries": ("charconcat.boundaries",),
    "word_dropout": ("word.dropout", "vectors.dropout"),
    "tag_dropout": ("tag.dropout",),
    "form_dropout": tuple(f"{name}.dropout" for name in _FORM),
    "word_vectors": ("word.vectors",),
    "vectors": ("vectors.file",),
    "elmo_weights": ("elmo.weights",),
    "elmo_options": ("elmo.options",),
    "elmo_dropout": ("elmo.mix_dropout",),
    "transformer": ("transformer.name",),
    "transformer_revision": ("transformer.revision",),
    "transformer_pooling": ("transformer.pooling",),
    "transformer_frozen": ("transformer.frozen",),
    "label_attention": ("label_attention.use",),
    "tagger": ("tagger.use",),
    "d_label_hidden": ("scorer.d_hidden",),
    "d_arc": ("dependencies.d_arc",),
    "d_relation": ("dependencies.d_relation",),
    "biaffine_dropout": ("dependencies.dropout",),
    "arc_loss_weight": ("dependencies.arc_loss_weight",),
    "relation_loss_weight": ("dependencies.relation_loss_weight",),
    "d_decoder": ("decoder.d_hidden",),
    "decoder_layers": ("decoder.layers",),
    "d_action": ("decoder.d_action",),
    "d_attention": ("decoder.d_attention",),
    "decoder_dropout": ("decoder.dropout",),
    "attention_layers": ("decoder.attention_layers",),
    "pushed_words": ("decoder.pushed_words",),
    "removed_words": ("decoder.removed_words",),
}


def in_tables(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Settings of a layer of a recipe with every old key in the tables of the parts it concerns.

    Tables and keys that never moved stay as they are. ``label_attention = true`` and ``tagger =
    true`` become ``use = true`` in the part's table.
    """
    found: dict[str, Any] = {}
    for key, value in settings.items():
        if isinstance(value, Mapping):
            found.setdefault(key, {}).update(value)
        elif key not in FLAT:
            found["inputs" if key == "lexical" else key] = value
        else:
            for table, _, name in (place.partition(".") for place in FLAT[key]):
                found.setdefault(table, {}).setdefault(name, value)
    return found


def chosen(
    layers: Mapping[str, Any],
    inputs: Iterable[str] = INPUTS,
    encoders: Iterable[str] = ENCODERS,
) -> dict[str, Any]:
    """The settings of a parser, of tables for all parts those of the parts that it has.

    Args:
        layers: as of :func:`in_tables`; ``inputs`` is a list of names and ``encoder`` a name.
        inputs, encoders: all names, each that of a table.
    """
    names, encoder = layers.get("inputs", ()), layers.get("encoder", "attention")
    tables = {*inputs, *encoders, *OPTIONAL}
    found = {key: value for key, value in layers.items() if key not in tables}
    # In the order in which they are summed.
    found["inputs"] = {name: layers.get(name, {}) for name in inputs if name in names}
    found["encoder"] = {encoder: layers.get(encoder, {})}
    for name in OPTIONAL:
        table = dict(layers.get(name, {}))
        found[name] = table if table.pop("use", False) else None
    return found


def nested(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Settings of a parser as they are today; those that are already so come back as they are."""
    if "lexical" not in settings:
        return dict(settings)
    if "charconcat" in settings["lexical"]:
        settings = {"char_boundaries": "spelt", **settings}  # as it was before there was the key
    own = {key: value for key, value in settings.items() if key not in ("vectors", "transformer")}
    own |= {
        key: settings[key] for key in ("vectors", "transformer") if settings.get(key) is not None
    }
    return chosen(in_tables(own))
