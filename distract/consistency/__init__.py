"""``distract consistency``: whether a judge's verdicts on three and four responses to a prompt fit together.

It needs no label and no rewrite (DESIGN, measure 6; Distracted evaluation, sections A.4 and A.5). ``drawing`` picks the
responses, ``asking`` has them judged, ``measuring`` counts, ``preparing`` puts a run together, ``published`` holds the
figures of the paper. It knows no protocol, judge or data set by name.
"""
