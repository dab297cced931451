"""Human longest supported subsequences: the Label Studio project, its answers, votes, agreement.

2308.12157, section 4. ``lss_project`` writes what annotators see, ``labelstudio`` turns annotations
into Label Studio's form and back, ``sources`` reads every file that people's answers come in,
``votes`` and ``agreement`` compare them, ``lss`` makes the dataset.
"""
