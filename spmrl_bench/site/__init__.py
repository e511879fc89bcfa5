"""The leaderboard as a folder of static pages, made from result records alone.

    results -> treebanks with rankings, kept parses -> tables, charts -> pages -> a folder

A table in a terminal shows numbers; whoever wants to believe them asks which run, with which
settings, counted how, on which sentences better. The pages answer each question one link further
on.
"""
