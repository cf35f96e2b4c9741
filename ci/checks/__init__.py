"""What `make check` holds true of this repository.

Each check is a module with a function that takes the repository's root and its files and returns problems,
each one line: `<where>: <what was found>; <what to do>`.
"""
