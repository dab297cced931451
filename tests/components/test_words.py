"""Words, subsequences, and the alignment of human LSS."""

from unicodedata import normalize

from components.words import align, is_subsequence, join_words, keep_targets, split_words
from records import LssExample

CLAIM = 'In 2014, "Ann" (born 1960) didn\'t win the two-day race.'


def texts(claim):
    return [word.text for word in split_words(claim)]


def test_words_have_their_places_and_split_punctuation():
    words = split_words(CLAIM)
    assert all(CLAIM[w.start : w.end] == w.text for w in words)
    assert texts(CLAIM)[:6] == ["In", "2014", ",", '"', "Ann", '"']
    assert "didn't" in texts(CLAIM)


def test_marks_and_joiners_belong_to_their_word():
    hindi = "मैरी क्यूरी का जन्म हुआ।"
    assert texts(hindi) == ["मैरी", "क्यूरी", "का", "जन्म", "हुआ", "।"]
    assert texts("scien\u00adtist می\u200cخواهم") == ["scien\u00adtist", "می\u200cخواهم"]
    composed = "Élise née à Orléans."
    decomposed = normalize("NFD", composed)
    assert texts(decomposed) == [normalize("NFD", word) for word in texts(composed)]
    assert align(composed, split_words(decomposed), strict=True) == [True] * 5
    assert is_subsequence("scientist", "scien\u00adtist")


def test_joining_some_words_leaves_single_blanks():
    words = split_words("Ann, a painter, won.")
    keep = [word.text in {"Ann", "won", "."} for word in words]
    assert join_words("Ann, a painter, won.", words, keep) == "Ann won."


def test_alignment_ignores_case_and_added_full_stops_but_not_words():
    words = split_words("Ann won the race")
    assert align("ann won.", words) == [True, True, False, False]
    assert align("Ann nearly won", words) is None
    assert align("won Ann", words) is None
    assert align("", words) == [False] * 4
    assert align("ann won.", words, strict=True) is None


def test_the_longest_match_is_found_where_a_greedy_one_fails():
    words = split_words("a b , a b c")
    kept = [w.text for w, k in zip(words, align("a b c", words), strict=True) if k]
    assert kept == ["a", "b", "c"]


def test_targets_count_what_does_not_align():
    example = LssExample(
        reference="r", claim="Ann won", annotations=[{"lss": "Ann"}, {"lss": "Bob won"}]
    )
    words, kept, lost = keep_targets(example)
    assert (len(words), kept, lost) == (2, [[True, False]], 1)


def test_targets_from_token_labels_that_we_split_further():
    example = LssExample(
        reference="r", claim="ex-pats won", annotations=[{"lss": "won"}], keep=[False, True]
    )
    words, kept, _ = keep_targets(example)
    assert [w.text for w in words] == ["ex", "-", "pats", "won"]
    assert kept == [[False, False, False, True]]
