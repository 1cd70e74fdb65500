"""A guarantee in the words of someone who has to decide, not to compute."""

from __future__ import annotations

import math

from tfpriv._figures import rounded_up
from tfpriv.accounting.representation_statement import RepresentationStatement
from tfpriv.accounting.statement import PrivacyStatement

# e^epsilon beyond which a factor says nothing any more.
_NO_PROTECTION = 10.0


def plain_words(statement: PrivacyStatement | RepresentationStatement) -> list[str]:
    """Returns paragraphs that say what epsilon and delta mean for a person.

    The odds of anything that is concluded from the release change by a factor of at
    most e^epsilon, but for an event of probability delta (Dwork & Roth 2014,
    definition 2.4; Wasserman & Zhou 2010 for the reading as a test). So whoever held
    it as likely as not that a record was in the data is at most
    e^epsilon / (1 + e^epsilon) sure of it afterwards.

    Args:
        statement: of a release.
    """
    representation = isinstance(statement, RepresentationStatement)
    if math.isinf(statement.epsilon):
        return [
            "This release gives NO mathematical guarantee of privacy. What someone can "
            "learn from it about a single "
            + ("text" if representation else "person's record")
            + " is not bounded by anything, and an attack that failed proves nothing. "
            "Treat it as you would treat the private data itself."
        ]
    if representation:
        worlds = (
            "Compare two worlds: the released vector was made of one text, or of any "
            "other"
        )
        change = "which of the two texts it was"
    else:
        worlds = (
            "Compare two worlds: the data as they were, and the same data with "
            f"{_without(statement)}"
        )
        change = f"whether the {statement.unit} was used"
    factor = _factor(statement.epsilon)
    lines = [
        f"{worlds}. Whatever anyone may conclude from what is released, and whatever "
        f"else they know, it is at most {factor} times as likely in one world as in "
        f"the other (e to the power of epsilon = {rounded_up(statement.epsilon)}).",
        f"In figures: whoever held it as likely as not {change} can be at most "
        f"{_sure(statement.epsilon)} sure afterwards.",
    ]
    if statement.group is not None:
        lines.append(_of_a_group(statement, "texts" if representation else "records"))
    if statement.delta:
        delta = f"{rounded_up(statement.delta, 3)} (delta)"
        if representation and statement.group is not None:
            group = statement.group
            together = rounded_up(statement.group_cost(group.size).delta, 3)
            delta += f", {together} for all the texts of one {group.unit}"
        lines.append(f"This may fail with a probability of up to {delta}.")
    if statement.epsilon > _NO_PROTECTION:
        lines.append(
            "At so large an epsilon the sentence is true and protects next to nobody: "
            "do not rely on it alone."
        )
    lines.append(
        "It does not say that nothing can be learnt about people in general: what is "
        "true of most records shows, as it should, and may be true of one who is not "
        "among them."
    )
    return lines


def _of_a_group(
    statement: PrivacyStatement | RepresentationStatement, records: str
) -> str:
    size, unit = statement.group.size, statement.group.unit
    together = statement.group_epsilon(size)
    if math.isinf(together):
        return f"For all the {records} of one {unit} at once it gives no bound."
    return (
        f"The same for all the {records} of one {unit} at once, {size} at most: "
        f"at most {_factor(together)} times as likely (epsilon {rounded_up(together)})."
    )


def _without(statement: PrivacyStatement) -> str:
    if statement.adjacency == "zero-out-one":
        return f"one person's {statement.unit} replaced by an empty one"
    return f"one person's {statement.unit} left out"


def _factor(epsilon: float) -> str:
    if epsilon > 20:
        power = epsilon / math.log(10)
        return f"about 10 to the power of {power:,.0f}"
    value = math.exp(epsilon)
    return f"{value:,.2f}" if value < 100 else f"{value:,.0f}"


def _sure(epsilon: float) -> str:
    # 1 - 1 / (1 + e^epsilon); never rounded down.
    doubt = 1 / (1 + math.exp(min(epsilon, 700.0)))
    digits = 1
    while digits < 12 and 100 * doubt < 10.0**-digits:
        digits += 1
    share = math.ceil((100 - 100 * doubt) * 10**digits) / 10**digits
    return f"{share:.{digits}f} %" if share < 100 else "100 %"
