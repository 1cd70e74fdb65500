"""Time and memory over the number of rows.

A cell is one task at one number of rows at one seed, a process of its own: its wall
time, CPU time (all threads) and peak resident memory as the operating system counts
them, start-up and imports included. What more rows cost is the difference between two
cells. Of private steps the time of one is measured inside the process.
"""
