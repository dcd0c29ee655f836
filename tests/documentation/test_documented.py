"""The README and docs/ name every flag and every file there is, and nothing else."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]


@pytest.mark.parametrize("command", ["main", "preview", "generate", "make_options", "convert"])
def test_flag_tables(command):
    printed = subprocess.run([sys.executable, "-m", f"brb_jax.{command}", "--help"], capture_output=True, text=True)
    flags = re.findall(r"^  --(?:\[no\])?(\w+):", printed.stdout, re.MULTILINE)
    page = (ROOT / "docs/flags.md").read_text("utf-8")
    section = page.split(f"## `python -m brb_jax.{command}`")[1].split("\n## ")[0]
    assert sorted(re.findall(r"^\| `--(\w+)`", section, re.MULTILINE)) == sorted(flags)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_lead_somewhere(page):
    for target in re.findall(r"\]\(([^)]+)\)", page.read_text("utf-8")):
        if "://" in target:
            continue
        path, _, anchor = target.partition("#")
        linked = page.parent / path if path else page
        assert linked.exists(), target
        if anchor:
            headings = re.findall(r"^#+ (.+)$", linked.read_text("utf-8"), re.MULTILINE)
            assert anchor in {re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-") for heading in headings}, target


def test_sections_that_the_code_points_to():
    sections = re.findall(r"^## (.+)$", (ROOT / "README.md").read_text("utf-8"), re.MULTILINE)
    for file in (ROOT / "brb_jax").rglob("*.py"):
        for section in re.findall(r'README,\s+"([^"]+)"', file.read_text("utf-8")):
            assert " ".join(section.split()) in sections, file
