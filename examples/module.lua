-- An Lmod module. Who installs it, once and after every upgrade:
--   python3 -m venv /sw/nnkgraph/1.0.0 && /sw/nnkgraph/1.0.0/bin/pip install nnkgraph
--   /sw/nnkgraph/1.0.0/bin/nnkgraph warm --all /sw/nnkgraph/cache
-- Neither group nor others may write to /sw/nnkgraph/cache and the folders above it.
help("nnkgraph: exact non-negative kernel regression graphs")
prepend_path("PATH", "/sw/nnkgraph/1.0.0/bin")
setenv("NNKGRAPH_CACHE", "/sw/nnkgraph/cache")
