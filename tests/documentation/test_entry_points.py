"""Every module that is run as a command can be imported beside all others: it defines its flags when it is run."""

import json
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
ENTRY_POINTS = sorted(
    ".".join(path.relative_to(ROOT).with_suffix("").parts)
    for path in (ROOT / "brb_jax").rglob("*.py")
    if '\nif __name__ == "__main__":\n' in path.read_text("utf-8")
)
# absl's flags are global, and the test process may have defined some.
CODE = """
import importlib, json, sys
from absl import flags

def ours():
    by_module = flags.FLAGS.flags_by_module_dict()
    return sorted(flag.name for name, found in by_module.items() if name.startswith("brb_jax") for flag in found)

modules = {name: importlib.import_module(name) for name in sys.argv[1:]}
defined = {"importing": ours()}
for name, module in modules.items():
    module.define_flags()
    defined[name] = ours()
    flags.FLAGS.remove_flag_values(defined[name])
print(json.dumps(defined))
"""


def test_all_in_one_process():
    done = subprocess.run([sys.executable, "-c", CODE, *ENTRY_POINTS], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    defined = json.loads(done.stdout)
    assert defined.pop("importing") == []
    commands = {"main", "preview", "generate", "make_options", "convert", "checkpoints.demo"}
    assert set(defined) == {f"brb_jax.{name}" for name in commands}
    assert all("out" in flags for name, flags in defined.items() if name != "brb_jax.preview")
