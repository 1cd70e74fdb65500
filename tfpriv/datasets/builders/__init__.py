"""TensorFlow Datasets builders; importing one registers it with `tfds`.

`checksums/` names the official files and their SHA-256.
"""
