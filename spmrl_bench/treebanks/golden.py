def reading_version(parts):
    return 1
