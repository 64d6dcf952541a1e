"""`archehr` and `python -m archehr` begin here."""

from archehr.terminal.ctrl_c import ended_by_ctrl_c


def main() -> None:
    """Import the command, which takes half a second, and run it."""
    with ended_by_ctrl_c():
        from archehr.cli import main as run_command
    run_command()


if __name__ == "__main__":
    main()
