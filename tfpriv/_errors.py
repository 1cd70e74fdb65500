"""The two errors that callers may want to tell apart from a programming mistake."""


class InputError(ValueError):
    """Something the caller gave cannot be used; found before any work was done.

    The message is one line: what was expected, what was received (of a private
    cell only its row and column), and how to mend it. The command line turns it
    into exit code 2.
    """


class BudgetExceeded(RuntimeError):
    """A charge would take a ledger over its limit; nothing was charged."""
