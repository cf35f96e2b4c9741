"""Writes the tokenizer: GGUF's vocabulary as a Hugging Face fast tokenizer.

GGUF names two kinds: ``gpt2`` (byte-level BPE, with its merges) and ``llama`` (SentencePiece
BPE, which has scores where the other has merges).
"""

from pathlib import Path
from typing import Any

from tokenizers import AddedToken, Tokenizer, decoders, normalizers, pre_tokenizers
from tokenizers.models import BPE
from tokenizers.processors import TemplateProcessing

from demo.conversion.config import write_json
from demo.conversion.source import GgufSource
from demo.errors import DemoError

_CONTROL, _USER_DEFINED = 3, 4  # GGUF token types
_SPACE = "\N{LOWER ONE EIGHTH BLOCK}"  # how SentencePiece writes a space
_ROLES = {"bos": "bos", "eos": "eos", "unk": "unknown", "pad": "padding"}


def write_tokenizer(source: GgufSource, directory: Path) -> None:
    """Writes ``tokenizer.json`` and ``tokenizer_config.json`` into ``directory``."""
    tokenizer = build_tokenizer(source)
    tokenizer.save(str(directory / "tokenizer.json"))
    write_json(directory / "tokenizer_config.json", _tokenizer_config(source))


def build_tokenizer(source: GgufSource) -> Tokenizer:
    """Returns the file's tokenizer: its ids equal those of the original.

    Raises:
        DemoError: The tokenizer is of a kind that is not known here.
    """
    kind = source.required("tokenizer.ggml.model")
    splitting = source.optional("tokenizer.ggml.pre", "default")
    if (kind, splitting) == ("gpt2", "smollm"):
        tokenizer = _byte_level(source)
    elif (kind, splitting) == ("llama", "default"):
        tokenizer = _sentencepiece(source)
    else:
        raise DemoError(
            f"{source.path}: tokenizer {kind!r} with pre-tokenizer {splitting!r} cannot be "
            f"converted; use a file with gpt2/smollm or llama/default"
        )
    _add_whole_tokens(tokenizer, source)
    _add_bos(tokenizer, source)
    return tokenizer


def _byte_level(source: GgufSource) -> Tokenizer:
    """GPT-2's BPE; SmolLM splits every digit off first."""
    tokens = source.required("tokenizer.ggml.tokens")
    merges = [tuple(merge.split(" ")) for merge in source.required("tokenizer.ggml.merges")]
    tokenizer = Tokenizer(BPE(vocab={t: i for i, t in enumerate(tokens)}, merges=merges))
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [
            pre_tokenizers.Digits(individual_digits=True),
            pre_tokenizers.ByteLevel(add_prefix_space=False),
        ]
    )
    tokenizer.decoder = decoders.ByteLevel()
    return tokenizer


def _sentencepiece(source: GgufSource) -> Tokenizer:
    """SentencePiece's BPE with byte fallback."""
    if source.optional("tokenizer.ggml.add_space_prefix", True):
        raise DemoError(
            f"{source.path}: a tokenizer that adds a space prefix cannot be converted; "
            f"use a file with tokenizer.ggml.add_space_prefix = false"
        )
    tokens = [t.replace(" ", _SPACE) for t in source.required("tokenizer.ggml.tokens")]
    vocabulary = {token: i for i, token in enumerate(tokens)}
    scores = source.required("tokenizer.ggml.scores")
    types = source.required("tokenizer.ggml.token_type")
    ordinary = [i for i, kind in enumerate(types) if kind not in (_CONTROL, _USER_DEFINED)]
    unknown = tokens[source.required("tokenizer.ggml.unknown_token_id")]
    tokenizer = Tokenizer(
        BPE(
            vocab=vocabulary,
            merges=merges_by_score([(tokens[i], scores[i]) for i in ordinary]),
            unk_token=unknown,
            fuse_unk=True,
            byte_fallback=True,
        )
    )
    tokenizer.normalizer = normalizers.Replace(" ", _SPACE)
    tokenizer.decoder = decoders.Sequence(
        [decoders.Replace(_SPACE, " "), decoders.ByteFallback(), decoders.Fuse()]
    )
    return tokenizer


def merges_by_score(pieces: list[tuple[str, float]]) -> list[tuple[str, str]]:
    """Returns the BPE merges that a SentencePiece BPE vocabulary implies, best first.

    SentencePiece joins the neighbours whose union has the best score; so every way to cut a
    piece into two other pieces is a merge, and its rank is the rank of the piece's score.
    """
    known = {piece for piece, _ in pieces}
    merges = []
    for piece, _ in sorted(pieces, key=lambda scored: -scored[1]):
        for cut in range(1, len(piece)):
            left, right = piece[:cut], piece[cut:]
            if left in known and right in known:
                merges.append((left, right))
    return merges


def _add_whole_tokens(tokenizer: Tokenizer, source: GgufSource) -> None:
    """Adds the tokens that are found whole, before any BPE: control and user-defined ones."""
    tokens = source.required("tokenizer.ggml.tokens")
    control, user_defined = [], []
    for token, kind in zip(tokens, source.required("tokenizer.ggml.token_type"), strict=True):
        if kind == _CONTROL:
            control.append(AddedToken(token, special=True, normalized=False))
        elif kind == _USER_DEFINED:
            # Runs of spaces are among them: they must match the text after normalisation.
            written = token.replace(" ", _SPACE) if tokenizer.normalizer else token
            user_defined.append(AddedToken(written, special=False, normalized=True))
    tokenizer.add_special_tokens(control)
    tokenizer.add_tokens(user_defined)
    if tokenizer.get_vocab_size() != len(tokens):
        raise DemoError(
            f"{source.path}: {tokenizer.get_vocab_size()} tokens after adding the whole ones, "
            f"expected {len(tokens)}; use a file whose tokens are distinct"
        )


def _add_bos(tokenizer: Tokenizer, source: GgufSource) -> None:
    if not source.optional("tokenizer.ggml.add_bos_token", False):
        return
    bos_id = source.required("tokenizer.ggml.bos_token_id")
    bos = source.required("tokenizer.ggml.tokens")[bos_id]
    tokenizer.post_processor = TemplateProcessing(
        single=f"{bos} $A", pair=f"{bos} $A {bos}:1 $B:1", special_tokens=[(bos, bos_id)]
    )


def _tokenizer_config(source: GgufSource) -> dict[str, Any]:
    tokens = source.required("tokenizer.ggml.tokens")
    ids = {
        ours: source.optional(f"tokenizer.ggml.{gguf}_token_id") for ours, gguf in _ROLES.items()
    }
    config: dict[str, Any] = {
        "tokenizer_class": "PreTrainedTokenizerFast",
        "model_max_length": source.hyperparameter("context_length"),
        "clean_up_tokenization_spaces": False,
        **{f"{role}_token": tokens[i] for role, i in ids.items() if i is not None},
    }
    if template := source.optional("tokenizer.chat_template"):
        config["chat_template"] = template
    return config
