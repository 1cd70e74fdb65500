"""What the experiments on synthetic text share: start with `study.py`.

A study is a data set and a list of arms; a cell is one arm at one seed, written as
soon as it is measured. `report.py` makes tables and a plot of all cells in a folder.
"""
