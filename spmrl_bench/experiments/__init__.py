"""From recipes to records: what is trained, how runs are trained, selected and scored, and where
their folders and records lie. Parsers of others are such runs too, and are known here by what they
have to do only (:class:`~spmrl_bench.experiments.score.AnyRun`)."""
