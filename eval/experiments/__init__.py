"""One file a paper's table or figure; ``python -m eval experiment NAME``."""

from importlib import import_module

from records import UserError

EXPERIMENTS = {
    "robustness": "precision of adversarial texts with and without Core (2407.03572, section 5)",
}


def main(argv: list[str]) -> int:
    """Run one experiment; returns the exit code."""
    name, *rest = argv or ["--help"]
    if name in {"-h", "--help"}:
        print("usage: python -m eval experiment NAME [options]\n")
        print("\n".join(f"  {key:12} {text}" for key, text in EXPERIMENTS.items()))
        return 0
    if name not in EXPERIMENTS:
        raise UserError(f"no experiment {name!r}; give one of: {', '.join(EXPERIMENTS)}")
    return import_module(f"eval.experiments.{name}").main(rest)
