"""From recipes to records: what is trained, how runs are trained, selected and scored."""
