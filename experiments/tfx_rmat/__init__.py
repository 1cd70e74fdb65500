"""RMAT in a TFX pipeline: `trainer_module.py` is what its Trainer runs."""
