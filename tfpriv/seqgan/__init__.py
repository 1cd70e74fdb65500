"""SeqGAN: sequence generation by policy gradient on a discriminator.

`generator.py` is the file to read first, then `seqgan.py`. `Generator` (LSTM) and
`Discriminator` (TextCNN) are Keras models; `SeqGAN` trains them; `rewards` and
`rollout` say what a token was worth; `DiscriminatorStep` is the seam through which
a differentially private update enters; `make_oracle` is the judge of SeqGAN's
synthetic-data experiment.
"""

from tfpriv.seqgan.discriminator import Discriminator
from tfpriv.seqgan.discriminator_step import (
    DiscriminatorStep,
    PlainDiscriminatorStep,
    discriminator_losses,
)
from tfpriv.seqgan.generator import Generator
from tfpriv.seqgan.highway import Highway
from tfpriv.seqgan.oracle import entropy, make_oracle, share_of_gap_closed
from tfpriv.seqgan.rewards import (
    advantages,
    constant_reward,
    make_reward,
    per_step_reward,
    rollout_reward,
)
from tfpriv.seqgan.rollout import complete_prefixes
from tfpriv.seqgan.seqgan import Progress, SeqGAN

__all__ = [
    "Discriminator",
    "DiscriminatorStep",
    "Generator",
    "Highway",
    "PlainDiscriminatorStep",
    "Progress",
    "SeqGAN",
    "advantages",
    "complete_prefixes",
    "constant_reward",
    "discriminator_losses",
    "entropy",
    "make_oracle",
    "make_reward",
    "per_step_reward",
    "rollout_reward",
    "share_of_gap_closed",
]
