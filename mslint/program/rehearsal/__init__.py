"""What each rank of a run does, found by following the program as one of them: see ``follow``.

``assumptions`` decides tests, ``journal`` undoes and joins branches, ``modules`` runs files, ``objects`` and ``containers``
know what values hold, ``framework``, ``library`` and ``python_functions`` what calls do, ``feeding`` what data sets are for.
"""
