"""A small real tokenizer, trained offline on a text of this file: byte-level BPE, 512 tokens."""

from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
from transformers import PreTrainedTokenizerFast

SIZE = 512
PAD, BOS, EOS = range(3)
SPECIAL_TOKENS = ("<pad>", "<s>", "</s>")

_CHAT_TEMPLATE = (
    "{% for message in messages %}{{ message['role'] }}: {{ message['content'] }}\n{% endfor %}"
    "{% if add_generation_prompt %}assistant:{% endif %}"
)
_TEXT = """
A serving engine keeps many requests in flight at once. Each request brings a prompt, and the
engine answers it one token at a time, until a stop condition holds or the length limit is
reached. The prompt is read in one or more large steps, the answer is written in many small ones,
and a good scheduler mixes both kinds of work in every step so that the device is never idle.
The keys and values of earlier tokens live in pages of a fixed size. A table says which pages
belong to which request, so that memory is shared out in small pieces and nothing is copied when
a request grows. When two prompts begin with the same words, they can share the pages that hold
these words: the second request finds them in the cache and starts its work where they end.
A compiler likes shapes that it has seen before. So the number of tokens in a step is rounded up
to a bucket, the rows that were added are padding, and whatever they hold must never change an
answer. Before the first request arrives, each bucket is compiled once; after that, every step
runs a program that already exists. Sampling turns scores into a choice: the greedy rule takes
the best one, a temperature flattens or sharpens the distribution, and a seed makes the noise
repeat itself. Tests compare the tokens with those of another implementation, computed slowly
and with care, because two programs that were written apart seldom make the same mistake.
"""


def build_tokenizer() -> PreTrainedTokenizerFast:
    """Returns the tokenizer; the same on every machine, since training is deterministic."""
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=SIZE,
        special_tokens=list(SPECIAL_TOKENS),
        initial_alphabet=sorted(pre_tokenizers.ByteLevel.alphabet()),
        show_progress=False,
    )
    tokenizer.train_from_iterator(_TEXT.strip().splitlines(), trainer)
    assert tokenizer.get_vocab_size() == SIZE, "the text is too short for the vocabulary"
    return PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        pad_token=SPECIAL_TOKENS[PAD],
        bos_token=SPECIAL_TOKENS[BOS],
        eos_token=SPECIAL_TOKENS[EOS],
        chat_template=_CHAT_TEMPLATE,
    )
