"""What the campaign holds, property by property, and the counts of it that go into the docs."""
