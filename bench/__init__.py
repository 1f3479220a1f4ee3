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
- *Keeping the factor's rows for all atoms* makes a step a sum of rows without a chain:
  an atom that is added finds its own coefficients ready. An inverse beside it and plane
  rotations for atoms that leave took the roll from 5.4 to 2 times the bound, and vector
  instructions written by hand to 1.3; together they took 11 s to compile, in every
  container and on every cluster node. Plain loops, a factor that is made again from the
  atom that leaves on, and several atoms before theta moves where many are chosen take a
  third of that to compile, and 1.3 to 1.7 times as long to solve with k = 30.
- *Sums over features in sixteen lanes*, by hand: as fast as the machine allows for one
  pair of rows. Candidates as columns, two rows and four features at a time, take 1.1 to
  1.5 times as long without a line of the compiler's own language, and the order of a
  sum is simply that of the features.
- *Rows of the kernel on demand*: with k = 100 and six neighbors that stay, a twentieth
  of the block is computed.

What was tried for the exact search
-----------------------------------
- *Blocks of queries against all rows*: 1.2 to 1.35 times their products at 50,000 x 64.
- *Every pair once*: a product is a bound for both of its rows; half the products. Which
  rows are worked on at a time is kept apart by groups (`search/_mutual.py`).
- *A first limit for every reservoir*, by counting in the first thousand values:
  without it two thirds of all values that enter a reservoir do so in the beginning.
- *Masks of 32 comparisons*, the only instructions that are still written by hand:
  counting in plain loops makes a whole build of 20,000 x 100 1.13 times slower.
- Smaller tiles, rows ordered by nearest pivot, tighter limits: nothing.

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
