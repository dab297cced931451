"""The labels of Universal Dependencies v1 and v2 that PredPatt's rules use.

PredPatt: White et al. 2016, "Universal Decompositional Semantics on Universal Dependencies", and
Zhang et al. 2017, "An Evaluation of PredPatt and Open IE via Stage 1 Semantic Role Labeling". The
comments of this package refer to rules by their letters in ``doc/RULES.md`` of
github.com/hltcoe/PredPatt or, for rules without a letter, by their names in its code.
"""

NOMINAL_SUBJECT = {"nsubj", "nsubjpass", "nsubj:pass"}
CLAUSAL_SUBJECT = {"csubj", "csubjpass", "csubj:pass"}
SUBJECT = NOMINAL_SUBJECT | CLAUSAL_SUBJECT
OBJECT = {"dobj", "obj", "iobj"}
COMPLETING = CLAUSAL_SUBJECT | {"ccomp"}
CLAUSAL = COMPLETING | {"xcomp"}
MODIFYING_CLAUSE = {"acl", "acl:relcl", "advcl"}
OBLIQUE = {"nmod", "obl", "nmod:npmod", "obl:npmod"}
LIKE_ADJECTIVE = {"amod", "appos", "acl", "acl:relcl"}
# As in the original, the next two sets do not contain passive subjects.
LIKE_ARGUMENT = CLAUSAL_SUBJECT | OBJECT | {"nsubj", "nmod", "obl", "nmod:npmod", "nmod:tmod"}
LEFT_BY_MODIFIER = CLAUSAL_SUBJECT | OBJECT | {"nsubj", "neg", "aux", "auxpass", "aux:pass", "cop"}
LEFT_BY_MODIFIER |= {"advcl", "ccomp", "mark", "fixed", "parataxis"}
# Relations of words whose arguments are implicit.
ARGUMENTS_HIDDEN = LIKE_ADJECTIVE - {"appos"} | {"dep", "conj", "advcl"}
OUTSIDE_PREDICATE = LIKE_ADJECTIVE - {"amod"} | {"ccomp", "csubj", "advcl", "nmod:tmod"}
OUTSIDE_PREDICATE |= {"parataxis", "dep"}
TRIVIAL = {"mark", "cc", "punct"}
