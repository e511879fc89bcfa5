"""The leaderboard as a folder of static pages, made from records alone.

A table in a terminal shows numbers; whoever wants to believe them asks further: which run, with
which settings, counted how, on which sentences better. The pages answer each question one link
further on, open from a disk or from any server, and can be made again by anybody who has the
records.

Data flow one way here too:

    folders -> gathered -> entries -> standings, lengths, parses -> pages -> writing
    (records)  (frame)     (rows of a treebank)                     (HTML)   (a folder)
"""
