"""Real GLUE files, where they lie in a folder ``shared`` beside the checkout: official counts, exact reading."""

from pathlib import Path

import pytest

from headviz.tasks import load_task

GLUE = Path(__file__).parents[2].parent / "shared" / "data" / "glue"
pytestmark = pytest.mark.skipif(not GLUE.is_dir(), reason="the GLUE files are not beside the checkout")

COUNTS = {  # rows, and rows of each class in the task's own order
    ("cola", "train"): (8551, (2528, 6023)),
    ("cola", "dev"): (1043, (322, 721)),
    ("sst2", "train"): (67349, (29780, 37569)),
    ("sst2", "dev"): (872, (428, 444)),
    ("mrpc", "train"): (3668, (1194, 2474)),
    ("mrpc", "dev"): (408, (129, 279)),
    ("rte", "train"): (2490, (1249, 1241)),
    ("rte", "dev"): (277, (146, 131)),
    ("wnli", "train"): (635, (323, 312)),
    ("wnli", "dev"): (71, (40, 31)),
    ("qnli", "dev"): (5463, (2702, 2761)),
    ("mnli", "dev"): (9815, (3479, 3123, 3213)),
}


@pytest.mark.parametrize(("name", "split"), COUNTS)
def test_the_counts_are_official_and_every_text_is_a_field_of_the_file(name: str, split: str) -> None:
    # the obvious way, on bytes: no decoding of quotes, no other line ends
    folder = {"cola": "CoLA", "sst2": "SST-2"}.get(name, name.upper())
    stem = "dev_matched" if (name, split) == ("mnli", "dev") else split
    lines = (GLUE / folder / f"{stem}.tsv").read_bytes().rstrip(b"\n").split(b"\n")[1:]
    data = load_task(name, split, data=GLUE)
    rows, classes = COUNTS[name, split]
    assert len(lines) == len(data) == rows
    assert tuple(data.class_counts().values()) == classes
    assert data.notes == ()
    for line, example in zip(lines[::10], list(data)[::10], strict=True):
        fields = line.rstrip(b"\r").split(b"\t")
        assert example.text.encode() in fields
        if example.pair is not None:
            assert example.pair.encode() in fields
