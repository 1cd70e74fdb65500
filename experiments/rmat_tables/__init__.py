"""The tables of Wu and Luo 2023 (RMAT): start with `settings.py`, then `cells.py`.

A cell is one arm on one data set at one seed, trained on the official training part
and tested on the official test part (both Wizards: on the official validation and
test parts together). Its file `cells/DATASET_seedN_ARM.json` has

- `task`: macro-F1 and its confusion matrix, of the model's own head, and the macro-F1
  of a reader that was trained afresh on the released training representations;
- `attack`: `AttributeInferenceResult`, fresh attackers on the same releases;
- `certificate`: `LaplaceCertificate`, or null without noise;
- `certified`: in the arms "code" and "second", the three above once for each
  certified epsilon at which the same trained encoder was released;
- `counts`: in the arms "none" and "second", how often each private label, label,
  intensity and prediction come together in training and in test: all that labels sent
  through randomised response depend on;
- sizes, settings, seconds, machine and versions. No text.

Nothing is selected on the test part: the number of epochs is fixed beforehand.
"""
