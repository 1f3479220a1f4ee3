"""How fast nnkgraph is, as ratios of two things measured side by side.

``python -m bench`` (or ``make bench``) prints one table. Every line compares nnkgraph
with a peer or with a lower bound, on the same data, with the same number of threads,
in turns; it shows the median of the ratios and their range. Below 1 means that
nnkgraph is faster. Bare seconds of a shared machine say little.

The solver's lower bound gathers a node's candidates, computes its whole kernel block in
float64 with the same compiled sums and the same exponential function, and solves one
Cholesky system on the support that is known from the solution. A solver that computes
all of the block and has to find the support cannot be faster. nnkgraph is, where the
support is small: it does not compute all of the block.

What was tried for the solver, and what it brought
--------------------------------------------------
- *Block pivoting* (Kim and Park), starting from all atoms or from those that the best
  atom leaves wanting: two or three factorizations per node. It won where nearly all
  candidates stay and lost elsewhere, and needed a rule to choose. Dropped: adding atoms
  to a factor over all atoms (below) is as fast where all stay.
- *Adding atoms with a factor of the chosen ones only*, as Lawson and Hanson do it: a
  step solves two triangular systems, each a chain of dependent divisions. 1.9 times the
  bound on digits, 5.4 times on the Swiss roll with k = 10.
- *Keeping the factor's rows for all atoms and the inverse beside it* makes a step a sum
  of rows without a chain; an atom that is added finds its own coefficients ready, and
  one that leaves needs plane rotations only. That took the roll from 5.4 to 2.
- *Vector instructions written by hand* for these sums (`qp/_vectors.py`): problems are
  so small that the compiler's guards against overlap and remainders cost more than the
  loops behind them.
- *No views of rows, no counted references*: each cost two atomic instructions per pair
  of rows, a third of all time on digits with k = 10, in the bound as well.
- *Rows of the kernel on demand*: with k = 100 and six neighbors that stay, a twentieth
  of the block is computed. Where more than 0.8 of the atoms are still wanted after the
  first, all is computed at once: the pairs then need not wait for each other.
- Vectors of 4 and of 16 numbers instead of 8: 1.1 and 1.05 times slower on the roll.
- A choice by mask instead of a product where an atom's gate is closed: 8 % of the
  roll's time, because it becomes a masked store that later loads have to wait for.

What was tried for the exact search
-----------------------------------
- *Blocks of queries against all rows*: 1.2 to 1.35 times their products at 50,000 x 64.
- *Every pair once*: a product is a bound for both of its rows; half the products. Which
  rows are worked on at a time is kept apart by groups (`search/_mutual.py`).
- *A first limit for every reservoir*, by counting in the first thousand values:
  without it two thirds of all values that enter a reservoir do so in the beginning.
- *No counted references* in the loop that offers values to reservoirs: a third of its
  time. Smaller tiles, rows ordered by nearest pivot, tighter limits: nothing.

What was tried elsewhere
------------------------
- *pynndescent's compile time*, some 40 seconds in every process: most of its functions
  are not marked for numba's cache, since numba knows a compiled function that is passed
  as an argument by a number drawn in each process. Marking them, and giving these
  functions names that stay, leaves 0.3 s (`search/_warm_start.py`); results are equal
  to the bit.
- *faiss HNSW* as a backend without compile time: 200,000 rows of 16, 64, 384 columns in
  15, 23, 47 s at a recall of 0.994 or more; pynndescent, once it need not compile,
  takes 15, 11, 19 s at 0.999. So it wins nowhere, and there is no such backend.
- *The intrinsic dimension* as a judge of k-d trees: it says little. Four dimensions
  among 8, 16, 64 columns took 14, 21, 678 microseconds a row.
- *Ending the process without taking numba and LLVM apart*: a third of a second less.
"""
