"""Synthetic YouTube comments: the DP-SeqGAN paper's downstream task."""
