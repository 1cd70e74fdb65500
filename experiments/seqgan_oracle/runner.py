"""One seed: its oracle, its data, MLE, and each arm that goes on from MLE."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from experiments.seqgan_oracle.measures import measure
from experiments.seqgan_oracle.schedule import Schedule
from tfpriv._files import PUBLIC, atomic_write, write_json
from tfpriv.seqgan import (
    Discriminator,
    Generator,
    Progress,
    SeqGAN,
    make_oracle,
)

# What each arm gives policy gradient. "SeqGAN" is ours: rollouts and a baseline.
ARMS: dict[str, dict[str, Any]] = {
    "SeqGAN": {"reward": "rollout"},
    "constant reward": {"reward": "constant"},
}
Say = Callable[[str], None]


class Seed:
    """The run of one seed, in a folder from which it goes on after a kill.

    Args:
        seed: int. Of oracle, data, initial weights and everything drawn.
        schedule: Schedule.
        folder: where states and finished parts lie.
        say: called with a line about what goes on.
    """

    def __init__(
        self, seed: int, schedule: Schedule, folder: Path, say: Say = print
    ) -> None:
        self.seed = seed
        self.schedule = schedule
        self.folder = folder
        self.say = say
        folder.mkdir(parents=True, exist_ok=True)
        s = schedule
        self.oracle = make_oracle(
            s.vocabulary_size, s.length, s.embedding_dim, s.units, seed=seed
        )
        draw = self.oracle.sample
        self.train = draw(s.sequences, seed=10 * seed + 1)
        self.validation = draw(s.evaluation_samples, seed=10 * seed + 2)
        self.test = draw(s.evaluation_samples, seed=10 * seed + 3)

    def run(self) -> dict[str, Any]:
        """All parts; finished ones are read from the folder.

        Returns:
            part name -> what it measured.
        """
        parts = {"oracle": self._part("oracle", self._oracle)}
        parts["MLE"] = self._part("MLE", self._mle)
        for name in ARMS:
            parts[name] = self._part(name, lambda name=name: self._arm(name))
        parts["tempered MLE"] = self._part(
            "tempered MLE", lambda: self._tempered(parts["SeqGAN"]["nll_test"])
        )
        return parts

    def _part(self, name: str, work: Callable[[], dict]) -> dict[str, Any]:
        file = self.folder / f"{name.replace(' ', '_')}.json"
        if file.exists():
            return json.loads(file.read_text(encoding="utf-8"))
        self.say(f"seed {self.seed}: {name}")
        start = time.monotonic()
        result = work()
        # After a kill: the time since it was taken up again.
        result["seconds"] = round(time.monotonic() - start, 1)
        write_json(file, result, mode=PUBLIC)
        return result

    def _measure(self, generator: Generator, temperature: float = 1.0) -> dict:
        return measure(
            generator,
            self.oracle,
            self.test,
            samples=self.schedule.evaluation_samples,
            seed=10 * self.seed + 4,
            temperature=temperature,
        )

    def _oracle(self) -> dict[str, Any]:
        """The oracle's own entropy, and an untrained generator."""
        return {
            **self._measure(self.oracle),
            "random": self._measure(self._trainer("SeqGAN").generator),
        }

    def _trainer(self, arm: str) -> SeqGAN:
        s = self.schedule
        generator = Generator(
            s.vocabulary_size,
            s.length,
            s.embedding_dim,
            s.units,
            start_id=0,
            end_id=None,
            initializer_stddev=0.1,
            seed=self.seed + 1_000,
        )
        make = Discriminator.seqgan if s.full_discriminator else Discriminator
        gan = SeqGAN(
            generator,
            make(s.vocabulary_size, s.length, seed=self.seed + 2_000),
            rollouts=s.rollouts,
            batch_size=s.batch_size,
            learning_rate=s.learning_rate,
            discriminator_learning_rate=s.discriminator_learning_rate,
            seed=self.seed,
            **ARMS[arm],
        )
        gan.use_corpus(self.train)
        return gan

    def _mle(self) -> dict[str, Any]:
        """MLE at its best validation NLL, and where it is at the last epoch.

        Training on lowers NLL_oracle still, but as sharpening does: the last epoch
        has a row of its own and the arms go on from the best one.
        """
        gan, curve = self._trainer("SeqGAN"), []

        def on_epoch(progress: Progress) -> None:
            point = {"epoch": progress.step, "train_nll": progress.metrics["nll"]}
            point["validation_nll"] = gan.generator.nll(self.validation)
            if all(point["validation_nll"] < p["validation_nll"] for p in curve):
                self._save("MLE", gan)
            curve.append(point)
            self.say(f"seed {self.seed}: MLE {point}")

        gan.pretrain_generator(self.schedule.mle_epochs, callbacks=[on_epoch])
        last = self._measure(gan.generator)
        self._load("MLE", gan)
        return {**self._measure(gan.generator), "last epoch": last, "curve": curve}

    def _arm(self, name: str) -> dict[str, Any]:
        s, gan = self.schedule, self._trainer(name)
        needs_discriminator = ARMS[name]["reward"] != "constant"
        curve_file = self.folder / f"{name.replace(' ', '_')}_curve.json"
        curve: list[dict] = []
        if self._saved(name).exists():
            self._load(name, gan)
            curve = json.loads(curve_file.read_text(encoding="utf-8"))
            curve = [point for point in curve if point["round"] <= self._round(gan)]
        else:
            self._load("MLE", gan)

        def on_round(progress: Progress) -> None:
            if progress.stage == "discriminator":
                if progress.step % 100 == 0 or progress.step == progress.total:
                    self.say(f"seed {self.seed}: discriminator {progress}")
                return
            if progress.step % s.evaluate_every and progress.step != progress.total:
                return
            point = {
                "round": progress.step,
                **progress.metrics,
                **self._measure(gan.generator),
            }
            curve.append(point)
            write_json(curve_file, curve, mode=PUBLIC)
            self._save(name, gan)
            self.say(f"seed {self.seed}: {name} {point}")

        if needs_discriminator:
            gan.pretrain_discriminator(
                s.discriminator_pretraining_steps, callbacks=[on_round]
            )
        gan.train_adversarially(
            s.rounds,
            d_steps=s.d_steps if needs_discriminator else 0,
            callbacks=[on_round],
        )
        return {**self._measure(gan.generator), "curve": curve}

    def _tempered(self, nll_test: float) -> dict[str, Any]:
        """MLE over a grid of temperatures, and at the one of a given NLL_test.

        A generator pays in NLL_test for every sharpening, and gains by softening as
        far as MLE is too sure of itself. At SeqGAN's NLL_test, tempered MLE says how
        low NLL_oracle gets without any adversary.
        """
        gan = self._trainer("SeqGAN")
        self._load("MLE", gan)
        curve = [
            {"temperature": t, **self._measure(gan.generator, t)}
            for t in self.schedule.temperatures
        ]
        # From here down NLL_test only rises.
        high = min(curve, key=lambda point: point["nll_test"])["temperature"]
        low = min(self.schedule.temperatures) / 2
        while high - low > 0.0005:
            middle = (low + high) / 2
            sharper = gan.generator.nll(self.test, middle) > nll_test
            low, high = (middle, high) if sharper else (low, middle)
        return {
            **self._measure(gan.generator, high),
            "temperature": high,
            "curve": curve,
        }

    def _round(self, gan: SeqGAN) -> int:
        return gan.counters["rounds"]

    def _saved(self, name: str) -> Path:
        return self.folder / f"{name.replace(' ', '_')}.npz"

    def _save(self, name: str, gan: SeqGAN) -> None:
        with atomic_write(self._saved(name), mode=PUBLIC, binary=True) as file:
            np.savez(file, **gan.state_dict())

    def _load(self, name: str, gan: SeqGAN) -> None:
        with np.load(self._saved(name), allow_pickle=False) as state:
            gan.load_state_dict(state)
