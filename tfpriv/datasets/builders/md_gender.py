"""ParlAI's md_gender as a TensorFlow Datasets builder."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from typing import Any, ClassVar

import tensorflow_datasets as tfds
from etils import epath

from tfpriv.datasets.md_gender import (
    FOLDER,
    SENTIMENTS,
    URL,
    checksums,
    configs,
    read_md_gender,
)
from tfpriv.datasets.text_dataset import TextDataset

_DESCRIPTION = """
Texts with the gender of whom they are about (the private label) and the sentiment
that VADER finds in them (the label). Texts are raw, splits are the official ones and
hold duplicates.
"""
_CITATION = """
@inproceedings{dinan2020multi,
  author = {Dinan, Emily and Fan, Angela and Wu, Ledell and Weston, Jason and
            Kiela, Douwe and Williams, Adina},
  title = {Multi-Dimensional Gender Bias Classification},
  booktitle = {Proceedings of the 2020 Conference on Empirical Methods in Natural
               Language Processing},
  year = {2020},
  pages = {314--331},
  doi = {10.18653/v1/2020.emnlp-main.23},
}
"""
(_ARCHIVE,) = checksums()


@dataclasses.dataclass
class _Config(tfds.core.BuilderConfig):
    """A corpus of md_gender and the private labels in it."""

    private_names: tuple[str, ...] = ()


class MdGender(tfds.core.GeneratorBasedBuilder):
    """Builds `md_gender/CORPUS`: text, label (sentiment) and private (gender).

    The configurations are those of `tfpriv.datasets.md_gender`. `as_supervised` gives
    (text, label); the private label is in the whole examples.

    Examples:
        >>> import tensorflow_datasets as tfds
        >>> from tfpriv.datasets.builders.md_gender import MdGender
        >>> sorted(MdGender.builder_configs)[:3]
        ['convai2', 'funpedia', 'light']
    """

    # TFDS would find this by itself, through a package that it does not require.
    code_path = epath.Path(__file__)

    VERSION = tfds.core.Version("1.0.0")
    RELEASE_NOTES: ClassVar[dict[str, str]] = {"1.0.0": "The archive of October 2020."}
    BUILDER_CONFIGS: ClassVar[list[_Config]] = [
        _Config(name=name, description=config.summary, private_names=config.genders)
        for name, config in configs().items()
    ]
    MANUAL_DOWNLOAD_INSTRUCTIONS = f"""
    Put the official archive {_ARCHIVE}, the folder {FOLDER} that is in it, or a
    folder md_gender with that one into the manual folder. The archive is at {URL};
    `tfpriv datasets prepare md_gender/funpedia --data-dir DIR` makes such a folder.
    """

    def _info(self) -> tfds.core.DatasetInfo:
        genders = list(self.builder_config.private_names)
        return tfds.core.DatasetInfo(
            builder=self,
            description=_DESCRIPTION,
            homepage="https://parl.ai/projects/md_gender/",
            license="MIT",
            citation=_CITATION,
            features=tfds.features.FeaturesDict(
                {
                    "text": tfds.features.Text(),
                    "label": tfds.features.ClassLabel(names=list(SENTIMENTS)),
                    "private": tfds.features.ClassLabel(names=genders),
                }
            ),
            supervised_keys=("text", "label"),
        )

    def _split_generators(
        self, dl_manager: tfds.download.DownloadManager
    ) -> dict[str, Iterator[tuple[int, dict[str, Any]]]]:
        manual = dl_manager.manual_dir
        archive = manual / _ARCHIVE
        name = self.builder_config.name
        splits = read_md_gender(name, archive if archive.exists() else manual)
        parts = {
            "train": splits.train,
            "validation": splits.validation,
            "test": splits.test,
        }
        return {
            part: self._generate_examples(parts[part]) for part in configs()[name].files
        }

    def _generate_examples(
        self, data: TextDataset
    ) -> Iterator[tuple[int, dict[str, Any]]]:
        rows = zip(data.texts, data.labels, data.private, strict=True)
        for position, (text, label, private) in enumerate(rows):
            yield position, {"text": text, "label": label, "private": private}
