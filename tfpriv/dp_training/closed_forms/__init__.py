"""Per-example gradients that are never written out: norms and sums in closed form.

`uses.py` finds, in the graph of a loss, where each trainable variable meets the
activations of an example; each way of meeting has a form of gradient:

* `outer_products.py`: matrices, convolutions and unrolled recurrent kernels,
* `table_rows.py`: embedding tables,
* `whole_gradients.py`: biases, scales and whatever is small.

`form.py` says what a form must do.
"""
