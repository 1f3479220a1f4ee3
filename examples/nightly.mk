# Adds yesterday's rows to a graph, audits them, and verifies a sample: make -f nightly.mk
# Ended in the middle, the next run goes on: nothing is added twice.
NNKGRAPH ?= nnkgraph
OPTIONS  ?= -k 30
SAMPLE   ?= 1000

.PHONY: night anew
night: $(wildcard incoming/new.npy)
ifneq ($(wildcard incoming/new.npy),)
	$(NNKGRAPH) update graph.npz --features all.npy --add incoming/new.npy \
	  -o graph.npz --write-features all.npy -q
	$(NNKGRAPH) audit all.npy -o audit.csv -q
	$(NNKGRAPH) verify all.npy graph.npz --sample $(SAMPLE) > verified.txt
	mkdir -p done
	mv incoming/new.npy done/$$(date +%F-%H%M%S).npy
endif

# The first night, and whenever sigma has drifted away.
anew:
	$(NNKGRAPH) build all.npy -o graph.npz --updatable -q $(OPTIONS)
