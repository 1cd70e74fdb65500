"""Whether a guarantee holds against those who try: start with `attribute_inference.py`.

Attacks read private records, so that what they find is internal: it has no epsilon, and
it never chooses, filters or tunes what is released. An attack that fails proves
nothing; one that succeeds does.

The names below are loaded on first use.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tfpriv.attacks.attribute_inference import AttributeInferenceAttack
    from tfpriv.attacks.attribute_inference_result import (
        AttackerScore,
        AttributeInferenceResult,
    )
    from tfpriv.attacks.audit_result import AuditResult
    from tfpriv.attacks.audit_texts import AuditTexts
    from tfpriv.attacks.canaries import (
        Canary,
        CanaryExposure,
        insert_canaries,
        make_canaries,
        measure_exposure,
    )
    from tfpriv.attacks.class_discriminators import ClassDiscriminator
    from tfpriv.attacks.discriminator_membership import generator_likelihood, logan
    from tfpriv.attacks.estimate import Estimate
    from tfpriv.attacks.inversion import InversionAttack
    from tfpriv.attacks.inversion_result import InversionResult
    from tfpriv.attacks.lira import LiRA
    from tfpriv.attacks.membership_score import MembershipScore, score_membership
    from tfpriv.attacks.one_run import OneRunAudit, audit_one_run
    from tfpriv.attacks.published_attack import PublishedAttack
    from tfpriv.attacks.released_text_model import ReleasedTextModel
    from tfpriv.attacks.shadow_discriminators import ShadowDiscriminators
    from tfpriv.attacks.text_membership import TextMembershipAttack

__all__ = [
    "AttackerScore",
    "AttributeInferenceAttack",
    "AttributeInferenceResult",
    "AuditResult",
    "AuditTexts",
    "Canary",
    "CanaryExposure",
    "ClassDiscriminator",
    "Estimate",
    "InversionAttack",
    "InversionResult",
    "LiRA",
    "MembershipScore",
    "OneRunAudit",
    "PublishedAttack",
    "ReleasedTextModel",
    "ShadowDiscriminators",
    "TextMembershipAttack",
    "audit_one_run",
    "exposure_p_value",
    "generator_likelihood",
    "insert_canaries",
    "logan",
    "make_canaries",
    "measure_exposure",
    "score_membership",
]

_HOMES = {
    "AttackerScore": "attribute_inference_result",
    "AttributeInferenceAttack": "attribute_inference",
    "AttributeInferenceResult": "attribute_inference_result",
    "AuditResult": "audit_result",
    "AuditTexts": "audit_texts",
    "Canary": "canaries",
    "CanaryExposure": "canaries",
    "ClassDiscriminator": "class_discriminators",
    "Estimate": "estimate",
    "InversionAttack": "inversion",
    "InversionResult": "inversion_result",
    "LiRA": "lira",
    "MembershipScore": "membership_score",
    "OneRunAudit": "one_run",
    "PublishedAttack": "published_attack",
    "ReleasedTextModel": "released_text_model",
    "ShadowDiscriminators": "shadow_discriminators",
    "TextMembershipAttack": "text_membership",
    "audit_one_run": "one_run",
    "exposure_p_value": "canaries",
    "generator_likelihood": "discriminator_membership",
    "insert_canaries": "canaries",
    "logan": "discriminator_membership",
    "make_canaries": "canaries",
    "measure_exposure": "canaries",
    "score_membership": "membership_score",
}


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        module = importlib.import_module(f"tfpriv.attacks.{_HOMES[name]}")
        return getattr(module, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
