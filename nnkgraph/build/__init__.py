"""From features to a graph: the order of the stages."""
