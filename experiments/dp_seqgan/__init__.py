"""DP-SeqGAN's table and figures on YouTube spam: start with `cells.py`.

A cell is one arm at one seed: a model fitted on S1, attacked with S1 against S2, its
discriminators looked into, an RNN trained on what it wrote. `settings.py` says what
runs, `measures.py` what is measured, `tables.py` and `plots.py` what is shown.
"""
