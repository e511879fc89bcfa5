"""The kinds of encoders by name: what each is built of, and how wide a content it takes.

An encoder is a class, a subclass of :class:`~spmrl_bench.nn.token_encoder.TokenEncoder`, and one
entry here, without torch. All that the program knows of an encoder beside its class is in that
entry: configurations check their settings with it, parsers build their inputs and the encoder from
it. Installed packages add encoders through entry points of the group ``spmrl_bench.encoders``, each
of which names an :class:`EncoderKind`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

from spmrl_bench.errors import SpmrlError
from spmrl_bench.nn.choices import PositionInput
from spmrl_bench.registry import Registry, imported

if TYPE_CHECKING:
    from spmrl_bench.nn.token_encoder import TokenEncoder

#: Settings of a model, as attributes.
Settings = Any


@dataclass(frozen=True)
class EncoderKind:
    """A kind of encoder, as far as it can be known without torch.

    Attributes:
        name: the value of ``model.encoder``.
        encoder: ``module:class`` of the encoder, imported when one is built.
        content: of the settings, how wide the content is that it takes: the sum of the lexical
            inputs. :func:`whole_width` for one as wide as its tokens.
        settings: what its class is built with, by argument the setting that says it.
            ``d_content`` is among the settings: the width that the content really has.
        given: further arguments of its class, which no setting says.
        any_width: whether it takes a content of any other width as well, which it has where inputs
            stand side by side; its class then needs ``d_content``.
        products: of the settings, the tokens of a batch and the pairs of tokens of one sentence,
            how many multiplications its matrix products take; None where nobody counted.
    """

    name: str
    encoder: str
    content: Callable[[Settings], int]
    settings: Mapping[str, str]
    given: Mapping[str, Any] = field(default_factory=dict)
    any_width: bool = False
    products: Callable[[Settings, int, int], int] | None = None

    @cached_property
    def encoder_class(self) -> Any:
        """Its class, of :class:`~spmrl_bench.nn.token_encoder.TokenEncoder`."""
        return imported(self.encoder)

    def reads(self, setting: str) -> bool:
        """Whether it is built with a setting."""
        return setting in self.settings.values()

    def build(self, settings: Settings) -> TokenEncoder:
        """An encoder with random weights.

        Raises:
            SpmrlError: this entry names a setting that the model does not have.
        """
        for setting in self.settings.values():
            if not hasattr(settings, setting):
                raise SpmrlError(
                    f"encoder {self.name}: its entry names the setting '{setting}', which "
                    f"{type(settings).__name__} does not have"
                )
        read = {name: getattr(settings, setting) for name, setting in self.settings.items()}
        encoder: TokenEncoder = self.encoder_class(**read, **self.given)
        return encoder


def content_width(d_model: int, position: PositionInput) -> int:
    """Width of the content beside which the position stands, or to which it is added."""
    return d_model if position == "added" else d_model // 2


def whole_width(settings: Settings) -> int:
    """Width of a content that is as wide as a token."""
    width: int = settings.d_model
    return width


def _attention_products(settings: Settings, tokens: int, pairs: int) -> int:
    heads = settings.heads * settings.d_kv
    per_token = settings.d_model * 3 * heads  # queries, keys, values
    per_token += heads * settings.d_model  # output
    per_token += 2 * settings.d_model * settings.d_ff  # feed-forward, two maps
    if settings.matrices == "factored":
        per_token //= 2  # two maps of a quarter of the size each
    products: int = settings.layers * (tokens * per_token + pairs * 2 * heads)
    return products


def _recurrent(cell: str, gates: int) -> EncoderKind:
    """A bidirectional encoder of cells with so many gates, of input and of state each."""

    def products(settings: Settings, tokens: int, pairs: int) -> int:
        layers, d_model = settings.layers, settings.d_model
        rows = (layers - 1) * d_model + settings.d_content if layers else 0
        rows += layers * d_model // 2
        return int(tokens * gates * d_model * rows)

    return EncoderKind(
        cell,
        "spmrl_bench.nn.recurrent_encoder:RecurrentEncoder",
        content=whole_width,
        any_width=True,
        settings={
            "d_model": "d_model",
            "layers": "layers",
            "d_content": "d_content",
            "dropout": "residual_dropout",
            "masks": "recurrent_dropout",
            "precision": "precision",
        },
        given={"cell": cell},
        products=products,
    )


_OWN = (
    EncoderKind(
        "attention",
        "spmrl_bench.nn.encoder:Encoder",
        content=lambda settings: content_width(settings.d_model, settings.position),
        settings={
            "d_model": "d_model",
            "layers": "layers",
            "heads": "heads",
            "d_kv": "d_kv",
            "d_ff": "d_ff",
            "max_positions": "max_positions",
            "attention_dropout": "attention_dropout",
            "residual_dropout": "residual_dropout",
            "relu_dropout": "relu_dropout",
            "precision": "precision",
            "matrices": "matrices",
            "position": "position",
            "position_table": "position_table",
            "position_only_layers": "position_only_layers",
            "attention_scale": "attention_scale",
            "layer_norm": "layer_norm",
            "input_norm": "input_norm",
            "window": "attention_window",
            "relaxed": "relaxed_window",
            "forward_features": "forward_features",
            "start": "attention_start",
        },
        products=_attention_products,
    ),
    _recurrent("lstm", gates=4),
    _recurrent("gru", gates=3),
)

ENCODERS: Registry[EncoderKind] = Registry(
    "encoder", "spmrl_bench.encoders", {kind.name: kind for kind in _OWN}
)


def encoder_named(name: str, error: type[SpmrlError] = SpmrlError) -> EncoderKind:
    """The kind of encoder of a name.

    Raises:
        SpmrlError: there is none, or what a package gave is no kind of encoder.
    """
    kind = ENCODERS.get(name, error)
    if not isinstance(kind, EncoderKind):
        raise error(f"encoder {name}: its package names {kind!r}, which is no EncoderKind")
    return kind


def readers_of(setting: str) -> list[str]:
    """Names of the encoders that read a setting."""
    return [name for name in ENCODERS.names() if encoder_named(name).reads(setting)]
