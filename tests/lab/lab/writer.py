# SPDX-License-Identifier: Apache-2.0
"""Makes and removes names in directories until it is ended: writer.py PARENT HOW_MANY COUNT_FILE [PAUSE_S].

A name every PAUSE_S (a thousandth of a second), in the first HOW_MANY directories of PARENT in turn; COUNT_FILE has
their number.
"""

import itertools
import sys
import time
from pathlib import Path

PAUSE_S = 0.001
REPORT_EVERY = 100


def main():
    parent, how_many, count_file = sys.argv[1:4]
    pause_s = float(sys.argv[4]) if len(sys.argv) > 4 else PAUSE_S
    places = sorted(p for p in Path(parent).iterdir() if p.is_dir())[:int(how_many)]
    for number, place in enumerate(itertools.cycle(places), 1):
        name = place / "comes-and-goes"
        name.write_bytes(b"")
        name.unlink()
        if number % REPORT_EVERY == 0:
            Path(count_file).write_text(str(number))
        time.sleep(pause_s)


if __name__ == "__main__":
    main()
