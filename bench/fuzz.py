"""Ten thousand run files that are wrong: each ends in a refusal or in a run of which everything can be asked.

A case that takes longer than 10 seconds, or more than 8 GiB, counts as a failure like any other exception."""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "tests"))

from fuzzing import arguments, fuzz  # noqa: E402

from everything import ask_everything  # noqa: E402
from mutants import mutant  # noqa: E402
from vramscope.errors import RunError  # noqa: E402
from vramscope.run.store import load_run  # noqa: E402


def outcome(path: Path) -> str:
    """What became of a file, in a word; what goes wrong is raised."""
    try:
        run = load_run(path)
    except RunError:
        return "refused"
    ask_everything(run)
    return "sound" if not run.check() else "does not add up"


def main() -> int:
    parser = arguments(__doc__)
    parser.add_argument(
        "runs", nargs="*", type=Path, help="files to change, instead of small ones made for it"
    )
    args = parser.parse_args()
    right = [path.read_bytes() for path in args.runs]
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "a.vram"

        def written(_seed: int, data: bytes) -> str:
            path.write_bytes(data)
            return outcome(path)

        return fuzz(args.first, args.cases, lambda seed: mutant(seed, right), written)


if __name__ == "__main__":
    sys.exit(main())
