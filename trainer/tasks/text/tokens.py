"""From text to numbers, row by row, by TensorFlow ops that an exported model carries.

A word is a run of letters, digits and apostrophes, or one Chinese or Japanese character. It becomes
a *fingerprint*, a 62-bit hash, so that no table of strings is needed anywhere: two words in a
million have the same one with a chance of 1e-7.
"""

from __future__ import annotations

import tensorflow as tf

# Where there is no word, or no piece.
NONE = 0
_FINGERPRINTS = 1 << 62
_PIECES = (3, 4)
# The word itself and the pieces of one of nine letters.
MOST_PIECES = 16
_CHARACTERS = r"([\p{Han}\p{Hiragana}\p{Katakana}])"
_BETWEEN_WORDS = r"[^\p{L}\p{M}\p{N}']+"


def words(texts: tf.Tensor, *, length: int, lowercase: bool) -> tf.RaggedTensor:
    """Maps string [rows] to the first `length` words of each, string [rows, (words)]."""
    if lowercase:
        texts = tf.strings.lower(texts, encoding="utf-8")
    texts = tf.strings.regex_replace(texts, _CHARACTERS, r" \1 ")
    texts = tf.strings.regex_replace(texts, _BETWEEN_WORDS, " ")
    return tf.strings.split(texts)[:, :length]


def fingerprints(found: tf.RaggedTensor, length: int) -> tf.Tensor:
    """Maps `words` to int64 [rows, length], NONE after the last word."""
    hashed = tf.strings.to_hash_bucket_fast(found.flat_values, _FINGERPRINTS) + 1
    return found.with_flat_values(hashed).to_tensor(NONE, shape=[None, length])


def pieces(found: tf.RaggedTensor, length: int, buckets: int) -> tf.Tensor:
    """Maps `words` to the hashes of each and of its pieces, int32 [rows, length, MOST_PIECES].

    From 1 to `buckets`; NONE where there is no more. What begins or ends a word is a piece of its
    own kind: "<he" is not "he" within "the".
    """
    flat = found.flat_values
    letters = tf.strings.unicode_split(tf.strings.join(["<", flat, ">"]), "UTF-8")
    parts = tf.strings.ngrams(letters, _PIECES, separator="")
    all_parts = tf.concat([flat[:, tf.newaxis], parts], axis=1)
    hashed = tf.cast(tf.strings.to_hash_bucket_fast(all_parts.flat_values, buckets), tf.int32) + 1
    by_word = all_parts.with_flat_values(hashed).to_tensor(NONE, shape=[None, MOST_PIECES])
    return found.with_flat_values(by_word).to_tensor(NONE, shape=[None, length, MOST_PIECES])
