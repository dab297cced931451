"""The rules of PredPatt, under the names of its documentation, and the labels that they look at.

PredPatt: White et al. 2016, "Universal Decompositional Semantics on Universal Dependencies", and
Zhang et al. 2017, "An Evaluation of PredPatt and Open IE via Stage 1 Semantic Role Labeling". The
letters are those of ``doc/RULES.md`` of github.com/hltcoe/PredPatt; what has no letter there has
the name that its program traces it by. Every predicate and argument keeps the names of the rules
that made it, so each output can be traced to a line below.

A set of labels holds the names of Universal Dependencies v1 and v2: a tree has either, so no
version need be given.
"""

from __future__ import annotations

RULES = {
    # Which words are roots of predicates.
    "a1": "the word is a clausal complement or a clausal subject",
    "a2": "the word is an open clausal complement",
    "b": "the word heads a clause that modifies another word (resolve_relcl)",
    "c": "the word governs a subject, an object or a clause; or, a verb, a nominal modifier",
    "d": "the word is an apposition (resolve_appos)",
    "e": "the word is an adjective that modifies a word other than an adjective (resolve_amod)",
    "v": "the word is a possessor (resolve_poss)",
    "f": "the word is a conjunct of a predicate",
    # Which words are roots of its arguments.
    "g1": "subject or object of the predicate",
    "h1": "nominal modifier of the predicate",
    "h2": "nominal modifier of an adverb of the predicate",
    "k": "clausal complement or clausal subject of the predicate; with `cut`, an open one too",
    "i": "what an adjectival modifier modifies",
    "j": "what an apposition stands beside",
    "w1": "what is possessed",
    "w2": "who possesses it",
    # Which arguments a predicate has from elsewhere.
    "l": "arguments of an open clausal complement go to the predicate that it completes",
    "m": "each conjunct of an argument takes its place in turn (resolve_conj)",
    "arg_resolve_relcl": "the word that a clause modifies is an argument of that clause",
    "pred_resolve_relcl": "the predicate has such an argument (borrow_arg_for_relcl)",
    "en_relcl_dummy_arg_filter": "`that`, `which` or `who` goes where such an argument stands",
    "borrow_subj": "the subject is that of the predicate above",
    "borrow_obj": "a conjunct without any argument has the object of the predicate above",
    "cut_borrow_subj": "the subject of an open clausal complement is that of a predicate above",
    "cut_borrow_obj": "the subject of an open clausal complement is an object above",
    "cut_borrow_other": "the subject of an open clausal complement is what the clause modifies",
    # Which words make up the phrase of a predicate.
    "n1": "a word below the root belongs to it",
    "n2": "not an argument of the predicate",
    "n3": "not another predicate, unless it is an adjectival modifier",
    "n4": "not a clause, an apposition, a parataxis, a `nmod:tmod` or an unknown relation",
    "n5": "not the conjuncts of the root or of an open clausal complement",
    "n6": "the case marker of an argument belongs to the predicate",
    "pred_conj_borrow_aux_neg": "a conjunct that shares the subject shares its negation (v1)",
    "pred_conj_borrow_tokens_xcomp": "conjoined open complements share the words above them",
    # Which words make up the phrase of an argument.
    "o1": "a word below the root belongs to it",
    "o2": "its case marker goes to the predicate",
    "o3": "not what the predicate has",
    "o4": "not an apposition (resolve_appos), nor an unknown relation",
    "o5": "not the coordinating conjunction (resolve_conj)",
    "o6": "not the conjuncts (resolve_conj)",
    "o7": "not its case marker",
    "special_arg_drop_direct_dep": "not the clause of an argument whose modifier is the predicate",
    # What `simple` takes away.
    "p1": "a nominal modifier of the predicate",
    "p2": "any other argument that is not the predicate's own",
    "q": "an adverb of the predicate",
    "r": "an auxiliary of the predicate",
    # How it is written.
    "s": "`is/are` before an apposition",
    "t": "`is/are` before an adjectival modifier",
    "u": "no punctuation, conjunction or marker at either end, none twice (strip)",
}

NOMINAL_SUBJECT = {"nsubj", "nsubjpass", "nsubj:pass"}
CLAUSAL_SUBJECT = {"csubj", "csubjpass", "csubj:pass"}
SUBJECT = NOMINAL_SUBJECT | CLAUSAL_SUBJECT
OBJECT = {"dobj", "obj", "iobj"}
COMPLETING = CLAUSAL_SUBJECT | {"ccomp"}
CLAUSAL = COMPLETING | {"xcomp"}
MODIFYING_CLAUSE = {"acl", "acl:relcl", "advcl"}
OBLIQUE = {"nmod", "obl", "nmod:npmod", "obl:npmod"}
NOMINAL_MODIFIER = {"nmod", "obl", "nmod:npmod", "nmod:tmod"}
LIKE_ADJECTIVE = {"amod", "appos", "acl", "acl:relcl"}
# A passive subject is in neither of these two in the original, and so not here.
LIKE_ARGUMENT = NOMINAL_MODIFIER | CLAUSAL_SUBJECT | OBJECT | {"nsubj"}
LEFT_BY_MODIFIER = CLAUSAL_SUBJECT | OBJECT | {"nsubj", "neg", "aux", "auxpass", "aux:pass", "cop"}
LEFT_BY_MODIFIER |= {"advcl", "ccomp", "mark", "fixed", "parataxis"}
# Words with these relations have arguments that cannot be seen.
ARGUMENTS_HIDDEN = LIKE_ADJECTIVE - {"appos"} | {"dep", "conj", "advcl"}
OUTSIDE_PREDICATE = LIKE_ADJECTIVE - {"amod"} | {"ccomp", "csubj", "advcl", "nmod:tmod"}
OUTSIDE_PREDICATE |= {"parataxis", "dep"}
TRIVIAL = {"mark", "cc", "punct"}
