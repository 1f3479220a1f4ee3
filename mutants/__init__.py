"""Small mistakes in the package, one at a time, to see whether a test notices.

``python -m mutants`` (or ``make mutants``) draws mistakes by a seed (`sites`), measures
once which test reaches which line (`cover`), and runs after each mistake, in a copy of
the package, the tests that reach it (`trial`). What they do not notice is printed.

- *killed*: a test failed; *timeout*: a test took much longer than it does. Both count.
- *survived*: all tests passed; *unreached*: no test in this process comes to the line.
- *equivalent*: in the table of mistakes that change no result (`equivalent.toml`).

The score is the share of the first two among all that are not equivalent.
"""
