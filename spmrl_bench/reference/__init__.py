"""What can be set, where and to what, told by the code that checks it."""
