"""The command line: translates, calls one library function, says what was done."""
