"""What experiments of many cells share: folder, command line, machine, progress.

A cell is one measurement that takes minutes: one way to train, at one seed. Each is a
file of its own, written as soon as it is measured, so that a killed run goes on where
it was and several processes may share a folder.
"""
