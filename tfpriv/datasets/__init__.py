"""Where text comes from: start with `text_dataset.py`.

`read_table` and `write_table` take CSV, TSV, JSONL and TFRecord files, `split` makes
parts in which one record moves no other, `load` and `prepare` know the named data
sets, `write_tfds` writes a folder that TensorFlow Datasets reads. `builders/` holds
the TensorFlow Datasets builders. Nothing here imports TensorFlow until a TFRecord or a
`tf.data.Dataset` is asked for.
"""

from tfpriv.datasets.plain_texts import read_texts
from tfpriv.datasets.readers import read_table
from tfpriv.datasets.registry import data_folder, load, names, prepare, read
from tfpriv.datasets.sentiment import vader_sentiment, with_vader_labels
from tfpriv.datasets.splits import Splits, split
from tfpriv.datasets.text_dataset import TextDataset, concatenate
from tfpriv.datasets.tfds_folder import feature_spec, write_tfds
from tfpriv.datasets.writers import guard_formula, write_table

__all__ = [
    "Splits",
    "TextDataset",
    "concatenate",
    "data_folder",
    "feature_spec",
    "guard_formula",
    "load",
    "names",
    "prepare",
    "read",
    "read_table",
    "read_texts",
    "split",
    "vader_sentiment",
    "with_vader_labels",
    "write_table",
    "write_tfds",
]
