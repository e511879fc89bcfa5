"""Small pre-trained encoders of each kind, with random weights, in the files of the real ones.

Words are split into pieces of two vocabularies, one of letters and pieces with a mark inside a
word (WordPiece) and one with a mark at its beginning (the others). Weights are saved with the
heads of pre-training, as on the hub.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import torch

KINDS = ("bert", "roberta", "xlm-roberta", "xlnet")

#: Sentences whose words have one piece, several, unknown ones, quotes and brackets.
SENTENCES = (
    ("The", "cats", "sat", "on", "the", "matrimonial", "mat", "."),
    ("Cats", "!"),
    ("the", "Zürich", "cat", "\u2603", "(", "x1y", ")", "sat", "[SEP]", "<s>", "unthinkable"),
    ("mat",),
)

_WHOLE = ("the", "The", "cat", "sat", "on", "mat", "matri", "un", "think", ".", "!", "(", ")", '"')
_PIECES = ("mo", "nial", "able", "th", "ink", "ri", "ch")
_LETTERS = tuple("abcdefghiklmnorstuxyzABCZ01ü[]")

_SIZES = {"hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2}


def make(kind: str, folder: Path, positions: int = 64, dropout: float = 0.1) -> Path:
    """Write one of :data:`KINDS`, with a dropout and a position table (XLNet has none) of its own.

    The folder, which does not exist yet, is returned.
    """
    import transformers

    folder.mkdir(parents=True)
    size = {"bert": _wordpiece, "roberta": _byte_level}.get(kind, _sentencepiece)(folder, kind)
    torch.manual_seed(7)
    if kind == "xlnet":
        config = transformers.XLNetConfig(
            vocab_size=size, d_model=16, n_layer=2, n_head=2, d_inner=24,
            initializer_range=0.4, pad_token_id=0, dropout=dropout,
        )  # fmt: skip
        model = transformers.XLNetLMHeadModel(config)
        layers: Any = model.transformer.layer
        with torch.no_grad():  # as pre-trained weights, unlike new ones, they are not 0
            for layer in layers:
                for weight in (layer.rel_attn.seg_embed, layer.rel_attn.r_s_bias):
                    weight.normal_(std=0.5)
    else:
        name = {"bert": "Bert", "roberta": "Roberta", "xlm-roberta": "XLMRoberta"}[kind]
        config = getattr(transformers, f"{name}Config")(
            vocab_size=size, intermediate_size=24, max_position_embeddings=positions,
            initializer_range=0.4, type_vocab_size=2 if kind == "bert" else 1,
            pad_token_id=0 if kind == "bert" else 1, bos_token_id=0, eos_token_id=2,
            hidden_dropout_prob=dropout, attention_probs_dropout_prob=dropout, **_SIZES,
        )  # fmt: skip
        model = getattr(transformers, f"{name}ForMaskedLM")(config)
    model.save_pretrained(folder)
    return folder


def make_other(kind: str, folder: Path, bert: Path) -> Path:
    """Write an encoder of a kind not among :data:`KINDS`, with the tokenizer of a BERT."""
    import transformers

    tokenizer = transformers.AutoTokenizer.from_pretrained(bert)
    tokenizer.save_pretrained(folder)
    path = folder / "tokenizer_config.json"
    content = json.loads(path.read_text(encoding="utf-8"))
    _config(folder, **(content | {"tokenizer_class": "PreTrainedTokenizerFast"}))
    sizes: dict[str, Any] = {**_SIZES, "intermediate_size": 24, "embedding_size": 8}
    if kind == "distilbert":
        sizes = {"dim": 16, "n_layers": 2, "n_heads": 2, "hidden_dim": 24}
    sizes["max_position_embeddings"] = 64
    config = transformers.AutoConfig.for_model(
        kind, vocab_size=len(tokenizer), pad_token_id=0, initializer_range=0.4, **sizes
    )
    torch.manual_seed(7)
    transformers.AutoModelForMaskedLM.from_config(config).save_pretrained(folder)
    return folder


def _config(folder: Path, **content: object) -> None:
    (folder / "tokenizer_config.json").write_text(json.dumps(content), encoding="utf-8")


def _wordpiece(folder: Path, kind: str) -> int:
    entries = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *_WHOLE, *_LETTERS]
    entries += [f"##{piece}" for piece in (*_PIECES, *_LETTERS)]
    (folder / "vocab.txt").write_text("\n".join(entries) + "\n", encoding="utf-8")
    _config(folder, do_lower_case=False)
    return len(entries)


def _byte_level(folder: Path, kind: str) -> int:
    from tokenizers.pre_tokenizers import ByteLevel

    vocabulary = ["<s>", "<pad>", "</s>", "<unk>", *sorted(ByteLevel.alphabet())]
    merges = []
    for word in (*_WHOLE, *_PIECES):
        for text in (f"Ġ{word}", word):
            made = text[0]
            for letter in text[1:]:
                if f"{made}{letter}" not in vocabulary:
                    merges.append(f"{made} {letter}")
                    vocabulary.append(f"{made}{letter}")
                made += letter
    vocabulary.append("<mask>")
    ids = {entry: number for number, entry in enumerate(vocabulary)}
    (folder / "vocab.json").write_text(json.dumps(ids), encoding="utf-8")
    lines = ["#version: 0.2", *merges]
    (folder / "merges.txt").write_text("\n".join(lines) + "\n", encoding="utf-8")
    return len(vocabulary)


def _sentencepiece(folder: Path, kind: str) -> int:
    from tokenizers import Tokenizer, models, pre_tokenizers, processors

    specials = {
        "xlm-roberta": ["<s>", "<pad>", "</s>", "<unk>"],
        "xlnet": ["<unk>", "<s>", "</s>", "<cls>", "<sep>", "<pad>", "<mask>", "<eod>", "<eop>"],
    }[kind]
    pieces = [(entry, 0.0) for entry in specials]
    pieces += [(f"▁{word}", -3.0 - 0.1 * k) for k, word in enumerate(_WHOLE)]
    pieces += [(piece, -4.0 - 0.1 * k) for k, piece in enumerate(_PIECES)]
    pieces += [(letter, -8.0 - 0.1 * k) for k, letter in enumerate(("▁", *_LETTERS))]
    if kind == "xlm-roberta":
        pieces.append(("<mask>", 0.0))
    tokenizer = Tokenizer(models.Unigram(pieces, unk_id=specials.index("<unk>")))
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [pre_tokenizers.WhitespaceSplit(), pre_tokenizers.Metaspace("▁", "always")]
    )
    around = {
        "xlm-roberta": ("<s> $A </s>", ["<s>", "</s>"]),
        "xlnet": ("$A:0 <sep>:0 <cls>:2", ["<sep>", "<cls>"]),
    }[kind]
    tokenizer.post_processor = processors.TemplateProcessing(
        single=around[0], special_tokens=[(name, specials.index(name)) for name in around[1]]
    )
    tokenizer.add_special_tokens([*specials, "<mask>"])
    tokenizer.save(str(folder / "tokenizer.json"))
    name = {"xlm-roberta": "XLMRobertaTokenizer", "xlnet": "XLNetTokenizer"}[kind]
    _config(folder, tokenizer_class=name)
    return len(pieces)
