"""The `tfpriv` command, one file a command. Read `main.py` first."""
