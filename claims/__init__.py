"""What README and docs claim, and the measurement that proves or disproves it.

``python -m claims`` (or ``make claims``) measures the claims and prints one line for
each: claim, figure, verdict. docs/claims.md lists them, written by the same program.

A claim is a function that returns a figure, with the words of the page that make it
(``claim.claim``); the verdict is drawn in one place (``claim.judged``), by comparing
the figure with the limit. What cannot be measured here is said to be not run, with the
reason, and is never taken for proven.
"""
