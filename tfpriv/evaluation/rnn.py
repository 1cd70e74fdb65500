"""The recurrent classifier of the DP-SeqGAN paper's downstream task."""

from __future__ import annotations

import keras

from tfpriv.evaluation.network import NetworkClassifier


class RNNClassifier(NetworkClassifier):
    """An LSTM of 64 units that reads a text; its last state is classified.

    Embedding 64 with padding masked, spatial dropout .2, dropout .5. The arguments
    are those of `NetworkClassifier`.
    """

    units = 64

    def build(self, vocabulary_size: int, classes: int) -> keras.Model:
        """Returns the network; see `NetworkClassifier.build`."""
        seeds = iter(range(self.seed * 100, self.seed * 100 + 100))
        ids = keras.Input((None,), dtype="int32")
        uniform = keras.initializers.RandomUniform(seed=next(seeds))
        x = keras.layers.Embedding(vocabulary_size, 64, uniform, mask_zero=True)(ids)
        x = keras.layers.SpatialDropout1D(0.2, seed=next(seeds))(x)
        x = keras.layers.LSTM(
            self.units,
            kernel_initializer=keras.initializers.GlorotUniform(seed=next(seeds)),
            recurrent_initializer=keras.initializers.Orthogonal(seed=next(seeds)),
            # cuDNN's LSTM wants right-padded masks checked; the plain one is exact.
            use_cudnn=False,
        )(x)
        x = keras.layers.Dropout(0.5, seed=next(seeds))(x)
        logits = keras.layers.Dense(
            classes, kernel_initializer=keras.initializers.GlorotUniform(next(seeds))
        )(x)
        return keras.Model(ids, logits)
