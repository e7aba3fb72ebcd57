"""Make a model folder that can be trained out of a GGUF file, which is what packages carry.

Quantised weights are expanded to fp32. Transformers cannot save a model that it has loaded from such a file, so the
weights are moved into a fresh one first.
"""

from pathlib import Path

from skill2env.errors import UserError
from skill2env.store.files import check_writable, move_into_place, staged_folder
from skill2env.train.local.quiet import quiet_transformers


def prepare(weights: Path, folder: Path) -> None:
    """Write `weights` to `folder` as config.json, model.safetensors and a tokenizer.

    Raises:
        UserError: the extra is missing, or the file is no GGUF file of a known architecture.
        InfraError: boundary ``storage``.
    """
    if not weights.is_file():
        raise UserError(f"there is no file {weights}")
    with weights.open("rb") as file:
        if file.read(4) != b"GGUF":
            raise UserError(f"{weights} is no GGUF file", hint="model folders need no preparation")
    models, tokenizers = quiet_transformers()
    place, name = str(weights.parent.absolute()), weights.name
    try:
        loaded = models.from_pretrained(place, gguf_file=name, dtype="float32")
        tokenizer = tokenizers.from_pretrained(place, gguf_file=name)
    except (OSError, ValueError, KeyError, ImportError, NotImplementedError) as error:
        raise UserError(f"{weights} cannot be read: {str(error)[:300]}") from error
    config = type(loaded.config).from_dict(
        {name: value for name, value in loaded.config.to_dict().items() if name != "quantization_config"}
    )
    fresh = type(loaded)(config)
    fresh.load_state_dict(loaded.state_dict())
    fresh.generation_config = loaded.generation_config
    check_writable(folder.parent)
    with staged_folder(folder.parent) as stage:
        stage.chmod(0o755)
        fresh.save_pretrained(stage)
        tokenizer.save_pretrained(stage)
        move_into_place(stage, folder)
