"""Converted tokenizers give the ids of the originals."""

import io

import pytest
import sentencepiece
from gguf import GGUFWriter
from sentencepiece.sentencepiece_model_pb2 import ModelProto  # pyright: ignore[reportAttributeAccessIssue]

from demo.checkpoint import SMOLLM2, locate
from demo.conversion.source import GgufSource
from demo.conversion.tokenizer import build_tokenizer
from demo.errors import DemoError
from tests.models import vocabulary

TEXTS = [
    "A request grows, and nothing is copied.",
    "two  spaces,   three,\n\nand a\ttab",
    " leading and trailing ",
    "unseen: été 日本語 🙂",
    "<b>bold</b> and <turn>whole tokens<turn>",
    "",
]


@pytest.fixture(scope="module")
def sentencepiece_model():
    """A SentencePiece BPE with byte fallback, trained here: the independent implementation."""
    output = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(vocabulary._TEXT.strip().splitlines()),
        model_writer=output,
        model_type="bpe",
        vocab_size=600,
        byte_fallback=True,
        add_dummy_prefix=False,
        remove_extra_whitespaces=False,
        normalization_rule_name="identity",
        user_defined_symbols=["<b>", "</b>", "\u2581\u2581", "\u2581\u2581\u2581", "\n\n"],
        control_symbols=["<turn>"],
        pad_id=0,
        eos_id=1,
        bos_id=2,
        unk_id=3,
        minloglevel=2,
    )
    proto = ModelProto()
    proto.ParseFromString(output.getvalue())
    return proto


@pytest.fixture(scope="module")
def converted(sentencepiece_model, tmp_path_factory):
    path = tmp_path_factory.mktemp("spm") / "tokenizer.gguf"
    write_sentencepiece(sentencepiece_model, path)
    return build_tokenizer(GgufSource(path))


def write_sentencepiece(proto, path, *, add_space_prefix=False):
    """Writes a vocabulary as llama.cpp's exporter does: user-defined tokens with plain spaces."""
    piece_types = ModelProto.SentencePiece.Type
    # GGUF counts an unknown token among the control tokens of Gemma.
    types = [3 if p.type == piece_types.UNKNOWN else p.type for p in proto.pieces]
    tokens = [
        p.piece.replace("\u2581", " ") if t == 4 else p.piece
        for p, t in zip(proto.pieces, types, strict=True)
    ]
    writer = GGUFWriter(path, "gemma3")
    writer.add_tokenizer_model("llama")
    writer.add_tokenizer_pre("default")
    writer.add_token_list(tokens)
    writer.add_token_scores(
        [p.score if t != 4 else -1000.0 for p, t in zip(proto.pieces, types, strict=True)]
    )
    writer.add_token_types(types)
    writer.add_bos_token_id(2)
    writer.add_unk_token_id(3)
    writer.add_add_bos_token(True)
    writer.add_add_space_prefix(add_space_prefix)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.close()


@pytest.mark.parametrize("text", [text for text in TEXTS if "<turn>" not in text])
def test_ids_are_those_of_sentencepiece_after_bos(text, converted, sentencepiece_model):
    processor = sentencepiece.SentencePieceProcessor()
    processor.LoadFromSerializedProto(sentencepiece_model.SerializeToString())
    assert converted.encode(text).ids == [2, *processor.encode(text)]


@pytest.mark.parametrize("text", TEXTS)
def test_text_survives_the_round_trip(text, converted):
    assert converted.decode(converted.encode(text).ids[1:], skip_special_tokens=False) == text


def test_control_tokens_are_found_whole(converted):
    ids = converted.encode("a<turn>b").ids
    assert converted.token_to_id("<turn>") in ids


def test_a_space_prefix_is_refused(sentencepiece_model, tmp_path):
    path = tmp_path / "prefixed.gguf"
    write_sentencepiece(sentencepiece_model, path, add_space_prefix=True)
    with pytest.raises(DemoError, match=r"space prefix cannot be converted; use a file with"):
        build_tokenizer(GgufSource(path))


@pytest.mark.slow
def test_smollm2_ids_are_those_that_transformers_reads_from_gguf():
    from transformers import AutoTokenizer

    path = locate(SMOLLM2)
    ours = build_tokenizer(GgufSource(path))
    theirs = AutoTokenizer.from_pretrained(path.parent, gguf_file=path.name)
    for text in [*TEXTS, "<|im_start|>user\n12345 apples<|im_end|>\n"]:
        assert ours.encode(text).ids == theirs(text)["input_ids"], text
