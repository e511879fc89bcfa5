"""Best trees under scores of their parts, for a whole batch of sentences at once.

Binary trees under scores of labelled spans, dependency trees under scores of arcs, and both as
one structure. This room knows no model and no tree class: in come arrays of scores, one number
for each cell or arc (:mod:`spmrl_bench.chart.arrays`), out come cells and labels, or heads. Each
algorithm has a compiled kernel and a twin in plain Python, which gives the same bits.
"""
