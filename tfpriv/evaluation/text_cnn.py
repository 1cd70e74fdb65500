"""The convolutional classifier of the DP-SeqGAN paper's downstream task."""

from __future__ import annotations

import keras

from tfpriv.evaluation.network import NetworkClassifier
from tfpriv.text.vocabulary import PAD


class TextCNNClassifier(NetworkClassifier):
    """A TextCNN (Kim 2014): filters over 3, 4 and 5 tokens, maximum over time.

    Embedding 64, spatial dropout .2, 100 filters of each width, dropout .5. The
    arguments are those of `NetworkClassifier`.
    """

    widths = (3, 4, 5)
    filters = 100

    def build(self, vocabulary_size: int, classes: int) -> keras.Model:
        """Returns the network; see `NetworkClassifier.build`."""
        seeds = iter(range(self.seed * 100, self.seed * 100 + 100))

        def glorot() -> keras.Initializer:
            return keras.initializers.GlorotUniform(seed=next(seeds))

        ids = keras.Input((None,), dtype="int32")
        uniform = keras.initializers.RandomUniform(seed=next(seeds))
        x = keras.layers.Embedding(vocabulary_size, 64, uniform)(ids)
        x = keras.layers.SpatialDropout1D(0.2, seed=next(seeds))(x)
        # Only windows that begin with a token count, and what lies behind the text is
        # zero: the answer does not depend on how long the other texts of a batch are.
        real = keras.ops.expand_dims(keras.ops.cast(ids != PAD, "float32"), -1)
        x = x * real
        pooled = []
        for width in self.widths:
            convolution = keras.layers.Conv1D(
                self.filters, width, activation="relu", kernel_initializer=glorot()
            )
            padded = keras.layers.ZeroPadding1D((0, width - 1))(x)
            pooled.append(keras.layers.GlobalMaxPooling1D()(convolution(padded) * real))
        x = keras.layers.Concatenate()(pooled)
        x = keras.layers.Dropout(0.5, seed=next(seeds))(x)
        logits = keras.layers.Dense(classes, kernel_initializer=glorot())(x)
        return keras.Model(ids, logits)
