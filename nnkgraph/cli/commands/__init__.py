"""One file per command; its name is the command's, ``command`` its Click command."""
