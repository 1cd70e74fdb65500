"""Cells with figures that are easy to check by hand."""

import pytest

from experiments._synthesis.study import Study


@pytest.fixture
def study():
    return Study(
        name="made_up",
        title="Made up",
        dataset="sample",
        arms=("original", "default@8", "counts@8", "paper"),
        seeds=(0, 1),
        rows=10,
        text_rows=5,
        classifiers=("LR", "CNN"),
        largest_gaps={"LR": 0.03, "CNN": 0.05},
        least={"LR": 0.93},
        aims={"CNN": 0.927},
        remarks=("a remark",),
    )


def statement(epsilon, events=()):
    return {
        "epsilon": epsilon,
        "epsilon_finite": epsilon is not None,
        "events": [{"name": name, "epsilon": price} for name, price in events],
    }


def make_cell(arm, seed, lr, cnn, perplexity=100.0, **more):
    metrics = {
        "accuracy/LR": lr,
        "accuracy/CNN": cnn,
        "macro_f1/LR": lr - 0.01,
        "macro_f1/CNN": cnn - 0.01,
        "perplexity": perplexity,
        "coverage": 0.8,
        "self_bleu_4": 0.2,
        "distinct_2": 0.9,
        "duplicates": 0.0,
    }
    if arm == "original":
        metrics |= {"perplexity/shuffled": 300.0, "majority": 0.5}
    return {
        "experiment": "made_up",
        "arm": arm,
        "seed": seed,
        "part": "test",
        "metrics": metrics,
        "machine": "abacus, 2 cores",
        "versions": {"tfpriv": "0"},
        "seconds": 1.0,
        **more,
    }


@pytest.fixture
def cells():
    def route(label, chosen):
        divergence = {"seed": 0.1, "pretrained": 0.3, "adversarial": 0.2}
        return {"label": label, "chosen": chosen, "divergence": divergence}

    released = {"privacy": statement(7.99)}
    return [
        make_cell("original", 0, 0.94, 0.92),
        make_cell("original", 1, 0.96, 0.94),
        make_cell(
            "default@8",
            0,
            0.92,
            0.85,
            150.0,
            fit_seconds=10.0,
            routes=[route("ham", "seed"), route("spam", "adversarial")],
            candidates={
                "seed": {"accuracy/LR": 0.90, "accuracy/CNN": 0.84},
                "adversarial": {"accuracy/LR": 0.93, "accuracy/CNN": 0.86},
            },
            examples=[["ham", "a | pipe <br /> and *stars*"]],
            **released,
        ),
        make_cell(
            "default@8",
            1,
            0.92,
            0.87,
            150.0,
            fit_seconds=20.0,
            routes=[route("ham", "seed"), route("spam", "seed")],
            candidates={
                "seed": {"accuracy/LR": 0.92, "accuracy/CNN": 0.87},
                "adversarial": {"accuracy/LR": 0.93, "accuracy/CNN": 0.86},
            },
            examples=[["ham", "the text of seed one"]],
            **released,
        ),
        make_cell(
            "paper",
            0,
            0.80,
            0.81,
            privacy=statement(
                None, [("vocabulary", None), ("discriminator", 399850112.0)]
            ),
        ),
    ]
