"""The grammar of the artificial sample: templates and word lists, and how to fill them.

`ham.toml`, `spam.toml` and `shared.toml` hold sentence templates by subject and
intended sentiment, `topics.toml` what the comments are about, `slots.toml` the
word lists. `grammar.py` fills templates, `style.py` types like an author.
"""

from sample_grammar.grammar import Grammar, Template
from sample_grammar.style import Style

__all__ = ["Grammar", "Style", "Template"]
