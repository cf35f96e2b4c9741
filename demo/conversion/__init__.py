"""Converts a GGUF file into a Hugging Face model directory, offline.

``source`` reads the file, ``family`` says how an architecture's tensors and configuration are
named, ``weight`` and ``tokenizer`` write their part, ``directory`` puts it together, and
``cache`` keeps the result. Everything here decides what the converted files hold, so all of it
is part of the cache key.
"""
