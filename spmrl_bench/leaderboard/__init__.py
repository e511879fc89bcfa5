"""Records in, tables out: the one reader of results, and one entry behind every row of a table.

What trains and scores stands above and hands records in; nothing here knows runs or pages.
"""
