"""The labels that PredPatt's rules look at, of Universal Dependencies v1 and v2 alike.

PredPatt: White et al. 2016, "Universal Decompositional Semantics on Universal Dependencies", and
Zhang et al. 2017, "An Evaluation of PredPatt and Open IE via Stage 1 Semantic Role Labeling". In
the comments of this package the rules have the letters of ``doc/RULES.md`` of
github.com/hltcoe/PredPatt, or, without a letter there, the name that its program traces them by.

A tree has the labels of v1 or those of v2, so no version need be given.
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
# A passive subject is in neither of these two in the original, and so not here.
LIKE_ARGUMENT = CLAUSAL_SUBJECT | OBJECT | {"nsubj", "nmod", "obl", "nmod:npmod", "nmod:tmod"}
LEFT_BY_MODIFIER = CLAUSAL_SUBJECT | OBJECT | {"nsubj", "neg", "aux", "auxpass", "aux:pass", "cop"}
LEFT_BY_MODIFIER |= {"advcl", "ccomp", "mark", "fixed", "parataxis"}
# Words with these relations have arguments that cannot be seen.
ARGUMENTS_HIDDEN = LIKE_ADJECTIVE - {"appos"} | {"dep", "conj", "advcl"}
OUTSIDE_PREDICATE = LIKE_ADJECTIVE - {"amod"} | {"ccomp", "csubj", "advcl", "nmod:tmod"}
OUTSIDE_PREDICATE |= {"parataxis", "dep"}
TRIVIAL = {"mark", "cc", "punct"}
