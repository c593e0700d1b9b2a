"""A judge against people: how far its verdicts agree with their labels, under each way of asking (DESIGN, measure 5).

``plan`` judges what people have compared, ``comparisons`` reads rows, ``figures`` measures one judge, ``judges`` looks
at several (ReIFE, section 6), ``session`` puts a run together and ``document`` shows it to machines. It knows neither
models nor files of published verdicts, and no protocol by name but those that can be the base of comparisons.
"""
