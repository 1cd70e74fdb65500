"""What serving a private representation costs beside the same BERT alone."""
