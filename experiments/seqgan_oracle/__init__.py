"""SeqGAN's synthetic-data experiment, with the controls it lacks."""
