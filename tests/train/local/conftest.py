"""A model of a few kilobytes whose words are pieces of shell commands, and tasks on which it can earn something."""

from pathlib import Path
from typing import Any

import pytest

from skill2env.sandbox.images import BaseImage

WORDS = ("touch", "/tmp/one", "/tmp/two", ";", "true", "echo")


@pytest.fixture
def tiny(tmp_path: Path) -> Path:
    """A model folder: two layers, sixteen words, random weights that are the same every time."""
    torch: Any = pytest.importorskip("torch", reason="torch is not installed (extra `train`)")
    transformers: Any = pytest.importorskip(
        "transformers", reason="transformers is not installed (extra `train`)"
    )
    from tokenizers import Tokenizer, models, pre_tokenizers

    words = ("<pad>", "<unk>", "<end>", "<turn>", *WORDS)
    table = {word: at for at, word in enumerate(words)}
    inner = Tokenizer(models.WordLevel(table, unk_token="<unk>"))
    inner.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    tokenizer = transformers.PreTrainedTokenizerFast(
        tokenizer_object=inner, unk_token="<unk>", eos_token="<end>", pad_token="<pad>",
        additional_special_tokens=["<turn>"],
    )  # fmt: skip
    tokenizer.chat_template = (
        "{% for m in messages %}<turn> {{ m['content'] }} <end> {% endfor %}"
        "{% if add_generation_prompt %}<turn> {% endif %}"
    )
    torch.manual_seed(0)
    config = transformers.LlamaConfig(
        vocab_size=len(words), hidden_size=32, intermediate_size=64, num_hidden_layers=2, num_attention_heads=2,
        num_key_value_heads=1, max_position_embeddings=512, eos_token_id=table["<end>"], bos_token_id=None,
        pad_token_id=table["<pad>"], tie_word_embeddings=True, initializer_range=0.2,
    )  # fmt: skip
    folder = tmp_path / "tiny"
    transformers.LlamaForCausalLM(config).save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder


@pytest.fixture
def tasks(base: BaseImage, tmp_path: Path) -> list[Path]:
    """Two tasks, each for one command."""
    drills = tmp_path / "drills"
    return [_write_task(drills / f"make-{name}", base.reference, f"/tmp/{name}") for name in ("one", "two")]


def _write_task(folder: Path, reference: str, wanted: str) -> Path:
    """A task for one command: `wanted` is to exist (one metric), and nothing else beside it (another one)."""
    for name in ("environment", "tests", "solution"):
        (folder / name).mkdir(parents=True)
    (folder / "task.toml").write_text(
        f'schema_version = "1.3"\n[task]\nname = "drills/{folder.name}"\n[agent]\ntimeout_sec = 60\n'
        "[verifier]\ntimeout_sec = 60\n[environment]\nbuild_timeout_sec = 300\n"
    )
    (folder / "instruction.md").write_text(f"touch {wanted}\n")
    (folder / "environment" / "Dockerfile").write_text(f"FROM {reference}\nWORKDIR /tmp\n")
    (folder / "solution" / "solve.sh").write_text(f"#!/bin/bash\ntouch {wanted}\n")
    (folder / "tests" / "rubric.md").write_text("# Rubric\n\n## Must-do\n- Makes the file.\n")
    (folder / "tests" / "test.sh").write_text(
        "#!/bin/bash\nmkdir -p /logs/verifier\nmade=0; alone=0\n"
        f"[ -e {wanted} ] && made=1\n"
        '[ "$made" = 1 ] && [ "$(ls -d /tmp/one /tmp/two 2>/dev/null | wc -l)" = 1 ] && alone=1\n'
        'echo "{\\"made\\": $made, \\"alone\\": $alone}" > /logs/verifier/reward.json\n'
    )
    return folder
