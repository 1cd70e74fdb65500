"""YouTube Spam Collection as a TensorFlow Datasets builder."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, ClassVar

import tensorflow_datasets as tfds
from etils import epath

from tfpriv.datasets.youtube_spam import URL, read_youtube_spam

_DESCRIPTION = """
1,956 comments under five popular YouTube videos, each ham or spam. Texts are raw.
The official files name no splits, so there is one; tfpriv.datasets.load gives
splits by keyed hash in which no text is in two parts.
"""
_CITATION = """
@inproceedings{alberto2015tubespam,
  author = {Alberto, T{\\'u}lio C. and Lochter, Johannes V. and Almeida, Tiago A.},
  title = {TubeSpam: Comment Spam Filtering on YouTube},
  booktitle = {IEEE International Conference on Machine Learning and Applications},
  year = {2015},
  pages = {138--143},
  doi = {10.1109/ICMLA.2015.37},
}
"""


class YoutubeSpam(tfds.core.GeneratorBasedBuilder):
    """Builds `youtube_spam`: text, label (ham, spam) and the video it stood under.

    The files are verified against their SHA-256. Authors are not read.

    Examples:
        >>> import tensorflow_datasets as tfds
        >>> import tfpriv.datasets.builders.youtube_spam
        >>> "youtube_spam" in tfds.list_builders()
        True
    """

    # TFDS would find this by itself, through a package that it does not require.
    code_path = epath.Path(__file__)

    VERSION = tfds.core.Version("1.0.0")
    RELEASE_NOTES: ClassVar[dict[str, str]] = {"1.0.0": "The five official CSV files."}
    MANUAL_DOWNLOAD_INSTRUCTIONS = f"""
    Put the five CSV files, a folder youtube_spam with them, or the official archive
    youtube+spam+collection.zip into the manual folder. The archive is at {URL};
    `tfpriv datasets prepare youtube_spam --data-dir DIR` makes such a folder.
    """

    def _info(self) -> tfds.core.DatasetInfo:
        return tfds.core.DatasetInfo(
            builder=self,
            description=_DESCRIPTION,
            homepage="https://archive.ics.uci.edu/dataset/380",
            license="CC BY 4.0",
            citation=_CITATION,
            features=tfds.features.FeaturesDict(
                {
                    "text": tfds.features.Text(),
                    "label": tfds.features.ClassLabel(names=["ham", "spam"]),
                    "video": tfds.features.Text(),
                }
            ),
            supervised_keys=("text", "label"),
        )

    def _split_generators(
        self, dl_manager: tfds.download.DownloadManager
    ) -> dict[str, Iterator[tuple[str, dict[str, Any]]]]:
        manual = dl_manager.manual_dir
        places = [manual / "youtube_spam", manual / "youtube+spam+collection.zip"]
        source = next((place for place in places if place.exists()), manual)
        return {"train": self._generate_examples(source)}

    def _generate_examples(self, source: Any) -> Iterator[tuple[str, dict[str, Any]]]:
        for name, table in read_youtube_spam(source).items():
            video = name.removesuffix(".csv").partition("-")[2]
            for position, text in enumerate(table.texts):
                example = {
                    "text": text,
                    "label": table.labels[position],
                    "video": video,
                }
                yield f"{name}:{position:04d}", example
