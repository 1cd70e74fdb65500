"""Membership attacks on the networks of a class, without training any other."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tfpriv.attacks.class_discriminators import ClassDiscriminator
from tfpriv.attacks.membership_score import MembershipScore, score_membership


def logan(
    target: ClassDiscriminator,
    members: Sequence[str],
    non_members: Sequence[str],
    **options: Any,
) -> MembershipScore:
    """Thresholds the discriminator's score: what it takes for real, it may have seen.

    Args:
        target: the attacked networks.
        members: texts of the class that the discriminator was trained on.
        non_members: texts of the class that it was not trained on.
        **options: of `score_membership`.

    Returns:
        The score of the attack "LOGAN".

    References:
        Hayes et al. 2019, "LOGAN", arXiv:1705.07663, section 4.2 (white box).
    """
    return score_membership(
        "LOGAN", target.logits(members), target.logits(non_members), **options
    )


def generator_likelihood(
    target: ClassDiscriminator,
    members: Sequence[str],
    non_members: Sequence[str],
    **options: Any,
) -> MembershipScore:
    """Thresholds the mean log probability of a text's tokens under the generator.

    The published method pre-trains the generator on the records themselves, without
    noise; whoever has the generator has this attack. The arguments are `logan`'s.

    Returns:
        The score of the attack "generator likelihood".

    References:
        Yeom et al. 2018, "Privacy Risk in Machine Learning", arXiv:1709.01604, section
        3.1 (thresholds on the loss).
    """
    return score_membership(
        "generator likelihood",
        target.log_likelihoods(members),
        target.log_likelihoods(non_members),
        **options,
    )
