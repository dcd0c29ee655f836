"""What texts are made of, worked out by hand."""

import pytest

from brb_jax.generator.options.shape import atoms, pattern


@pytest.mark.parametrize(
    ("text", "kinds", "pieces"),
    [
        ("48291067", "N", ["48291067"]),
        ("-2.50", "F", ["2.50"]),
        ("[7, 12, 300]", "NNN", ["7", "12", "300"]),
        ("{a: 1, b: true}", "WNWB", ["a", "1", "b", "true"]),
        ("2024-02-29", "D", ["2024-02-29"]),
        ("2023-02-29", "NNN", ["2023", "02", "29"]),
        ("31/12/2024", "D", ["31/12/2024"]),
        ("31/12-2024", "NNN", ["31", "12", "2024"]),
        ("5 March 2024", "D", ["5 March 2024"]),
        ("March 5, 2024", "D", ["March 5, 2024"]),
        ("Kites 5, 2024", "WNN", ["Kites", "5", "2024"]),
        ("23:59", "T", ["23:59"]),
        ("24:00", "NN", ["24", "00"]),
        ("3:45 PM", "T", ["3:45 PM"]),
        ("13:45 PM", "NNW", ["13", "45", "PM"]),
        ("2024-02-29T23:59:01", "DWT", ["2024-02-29", "T", "23:59:01"]),
        ("1f3a", "NWNW", ["1", "f", "3", "a"]),
        ("naïve 北京", "WW", ["naïve", "北京"]),
        ("▲▼ → ◆", "", []),
        ("", "", []),
    ],
)
def test_atoms(text, kinds, pieces):
    found = atoms(text)
    assert "".join(atom.kind for atom in found) == kinds
    assert [atom.text for atom in found] == pieces
    for atom in found:
        assert text[atom.start : atom.start + len(atom.text)] == atom.text


@pytest.mark.parametrize(
    ("text", "shape"),
    [
        ("[7, 12]: kite", "[N, N]: W"),
        ("x=-1;y=2.5", "W=-N;W=F"),
        ("2024-02-29 at 10:30", "D W T"),
        ("a\nb c", "W\nW W"),
        ("▲▼", "▲▼"),
    ],
)
def test_pattern(text, shape):
    assert pattern(text) == shape
