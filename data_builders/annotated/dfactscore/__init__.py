"""``dfactscore_project`` and ``dfactscore_labels``: human D-FActScore of biographies.

2402.05629, section 4.2: annotators group a text's claims by person (Step 1), find each person's
page (Step 2) and judge each claim by that page (Step 3).
"""
