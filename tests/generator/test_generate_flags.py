"""The command: flags to files, and one clear line for a flag that makes no sense."""

import subprocess
import sys

import pytest

from brb_jax.data.reader import read_cases


def generate(*arguments):
    return subprocess.run(
        [sys.executable, "-m", "brb_jax.generate", *arguments], capture_output=True, text=True, check=False
    )


def test_writes_a_file_for_each_domain_and_task(tmp_path):
    out = tmp_path / "new"
    small = ["--m=12", "--operators=3", "--cases=5"]
    done = generate(f"--out={out}", "--domains=words,digits", "--tasks=MemoryRet,MemoryCom", "--k=3", *small)
    assert (done.returncode, done.stderr) == (0, "")
    names = [
        "words_MemoryRet_M12_que_ans.json",
        "words_MemoryCom_k3_M12_que_ans.json",
        "digits_MemoryRet_M12_que_ans.json",
        "digits_MemoryCom_k3_M12_que_ans.json",
    ]
    assert done.stdout == "".join(f"{out / name}: 5 cases\n" for name in names)
    assert len(read_cases([out]).cases) == 20

    first = {name: (out / name).read_bytes() for name in names}
    generate(f"--out={out}", "--tasks=MemoryRet", *small)
    assert (out / names[0]).read_bytes() == first[names[0]]
    refused = generate(f"--out={out}", "--domains=words", "--tasks=MemoryRet", "--seed=1", *small)
    says = f"generate: {out / names[0]} exists and holds something else; pass --overwrite to replace it\n"
    assert (refused.returncode, refused.stderr) == (1, says)
    assert (out / names[0]).read_bytes() == first[names[0]]
    generate(f"--out={out}", "--domains=words", "--tasks=MemoryRet", "--seed=1", "--overwrite", *small)
    assert (out / names[0]).read_bytes() != first[names[0]]


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["--domains=birds"], "generate: unknown domain 'birds'; domains are words, digits, letters, numbers"),
        (["--tasks=Ret"], "generate: unknown task 'Ret'"),
        (["--domains="], "generate: no files to write"),
        (["--k=9"], "generate: MemoryCom with operators=5: k must be between 1 and 5, got 9"),
        (["--k=0"], "generate: --k=0: '0' is not a number above zero"),
        (["--k=2,"], "generate: --k=2,: '' is not a number above zero"),
        (["--k=2,3,2"], "generate: --k names 2 twice"),
        (["--m=many"], "generate: --m=many: 'many' is not a number above zero"),
        (["--domains=words,words"], "generate: --domains names words twice"),
        (["--tasks=MemoryRet", "--k=3"], "generate: --k is for MemoryCom, which --tasks=MemoryRet leaves out"),
        (["--tasks=MemoryCom", "--edit_k=3"], "generate: --edit_k is for MemoryRev"),
        (["--tasks=MemoryCom", "--revision=both"], "generate: --revision is for MemoryRev"),
        (["--m=70", "--context_tokens=4096", "--tokenizer=x"], "generate: --m and --context_tokens both say"),
        (["--context_tokens=4096"], "generate: --context_tokens and --tokenizer, which counts them, go together"),
        (["--tokenizer=x"], "generate: --context_tokens and --tokenizer, which counts them, go together"),
        (["--context_tokens=4096", "--tokenizer=nowhere"], "generate: nowhere: no tokenizer.json"),
        (["--context_tokens=4096", "--tokenizer=no.gguf"], "generate: "),
        (["--relevant=middle"], "flag --relevant=middle"),
        (["--definitions=none"], "flag --definitions=none"),
        (["--distance=70"], "generate: MemoryRet with operators=5: m must be between 75 and 100000, got 70"),
        (["--operators=1", "--tasks=MemoryRet", "--distance=7"], "generate: MemoryRet: distance=7 needs operators"),
        (["--revision=maybe"], "flag --revision=maybe"),
        (["words"], "generate: unexpected argument 'words'"),
    ],
)
def test_bad_flag(tmp_path, arguments, says):
    out = tmp_path / "new"
    done = generate(f"--out={out}", *arguments)
    assert done.returncode != 0 and done.stdout == ""
    assert says in done.stderr and "Traceback" not in done.stderr
    assert done.stderr.count("\n") == 1 or "--help lists the flags" in done.stderr
    assert not out.exists(), "nothing is written before every flag is checked"


def test_out_must_be_given_and_be_a_directory(tmp_path):
    assert "--out is missing" in generate().stderr
    (tmp_path / "file").write_text("")
    done = generate(f"--out={tmp_path / 'file'}", "--cases=0")
    assert "file" in done.stderr and "Traceback" not in done.stderr


def test_help_explains_each_flag():
    text = generate("--help").stdout
    for flag in ("out", "domains", "tasks", "cases", "questions_per_context", "m", "k", "edit_k", "revision", "seed"):
        assert f"--{flag}:" in text


def test_a_file_for_each_number(tmp_path):
    done = generate(f"--out={tmp_path}", "--domains=sets", "--tasks=MemoryCom,MemoryRev", "--k=1,3", "--edit_k=1,2",
                    "--m=12,14", "--operators=4", "--cases=2")  # fmt: skip
    assert (done.returncode, done.stderr) == (0, "")
    numbers = ["MemoryCom_k1", "MemoryCom_k3", "MemoryRev_editk1", "MemoryRev_editk2"]
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        f"sets_{n}_M{m}_que_ans.json" for n in numbers for m in (12, 14)
    ]


def test_importing_defines_no_flag():
    code = "import brb_jax.generate, brb_jax.main"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False).stderr == ""
