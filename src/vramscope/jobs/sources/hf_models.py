"""Models of transformers, made from a config alone: weights are never downloaded, code of a repository never run."""

from __future__ import annotations

from typing import Any

from vramscope.errors import SourceError
from vramscope.jobs.facts import CAUSAL_LM, CLASSIFICATION, GENERATE, INFERENCE, MASKED_LM, SEQ2SEQ, Facts
from vramscope.jobs.source import Source
from vramscope.jobs.sources.hub import folder_of, had
from vramscope.jobs.sources.paper import Paper, check_keys, did_you_mean, first_line, library, made
from vramscope.jobs.tasks.models import AUTO_CLASSES

_MAPPINGS = {
    SEQ2SEQ: "MODEL_FOR_SEQ_TO_SEQ_CAUSAL_LM_MAPPING_NAMES",
    MASKED_LM: "MODEL_FOR_MASKED_LM_MAPPING_NAMES",
    CAUSAL_LM: "MODEL_FOR_CAUSAL_LM_MAPPING_NAMES",
    CLASSIFICATION: "MODEL_FOR_IMAGE_CLASSIFICATION_MAPPING_NAMES",
    INFERENCE: "MODEL_MAPPING_NAMES",
}
"""Of transformers, by task, in the order in which a model's is looked for."""


def on_paper(source: Source) -> Paper:
    """A transformers model of a type, of a local folder's config, or of a repository's."""
    transformers = library("transformers", source)
    library("transformers.models.auto.modeling_auto", source)
    by_type = is_type(source)
    config = _of_type(source, transformers) if by_type else _of_file(source, transformers)
    task = _task(source, config)
    automatic = getattr(transformers, AUTO_CLASSES[task])
    module = made(source, lambda: automatic.from_config(config, dtype=_float32()))
    return Paper(module, _facts(config, task, module, by_type))


def is_type(source: Source) -> bool:
    """Whether the name is a config's type (``hf/llama``), not a folder or a repository."""
    from transformers.models.auto.configuration_auto import CONFIG_MAPPING_NAMES

    return source.folder is None and source.name in CONFIG_MAPPING_NAMES


def _float32() -> Any:
    import torch

    return torch.float32


def _of_type(source: Source, transformers: Any) -> Any:
    usual = transformers.AutoConfig.for_model(source.name)
    _check(source, usual)
    try:
        return transformers.AutoConfig.for_model(source.name, **source.values)
    except Exception as error:
        raise SourceError(f"{source.text} is no config of {source.name}: {first_line(error)}") from error


def _of_file(source: Source, transformers: Any) -> Any:
    place = folder_of(source, "config.json") or had(source, "config.json", _types_like(source)).parent
    try:
        config = transformers.AutoConfig.from_pretrained(place, trust_remote_code=False)
        _check(source, config)
        return transformers.AutoConfig.from_pretrained(place, trust_remote_code=False, **source.values)
    except SourceError:
        raise
    except Exception as error:
        raise SourceError(f"{source.text}: its config cannot be used: {_refusal(error)}") from error


def _refusal(error: Exception) -> str:
    if "trust_remote_code" in str(error):
        return "it needs Python code of its own repository, which vramscope does not run"
    return first_line(error)


def _types_like(source: Source) -> str:
    """For a name that is neither folder nor repository: the config types that it may have meant."""
    from transformers.models.auto.configuration_auto import CONFIG_MAPPING_NAMES

    return "" if "/" in source.name else did_you_mean(source.name, CONFIG_MAPPING_NAMES)


def _check(source: Source, config: Any) -> None:
    known = {*config.to_dict(), *config.attribute_map, *vars(config), "num_labels"}  # all configs take that
    inner = set(config.get_text_config().to_dict()) - known
    for key, value in source.settings:
        if key in inner:
            raise SourceError(
                f'{source.text}: {key} is a figure of the inner config: text_config={{"{key}":{value}}}'
            )
    check_keys(source, (key for key in known if not key.startswith("_")), type(config).__name__)


def _task(source: Source, config: Any) -> str:
    """The task that the architecture is for."""
    from transformers.models.auto import modeling_auto

    speech = config.model_type in modeling_auto.MODEL_FOR_SPEECH_SEQ_2_SEQ_MAPPING_NAMES
    for task, mapping in () if speech else _MAPPINGS.items():
        if config.model_type in getattr(modeling_auto, mapping, ()) and _suits(config, task):
            return task
    raise SourceError(
        f"{source.text}: transformers has no model for {config.model_type} that takes text or images;"
        " give it as module:function that returns a vramscope.Job"
    )


def _suits(config: Any, task: str) -> bool:
    """Bart's decoder alone is a causal LM, too, and BERT with another mask: that is not what they are for."""
    if task == SEQ2SEQ:
        return bool(config.is_encoder_decoder)
    if task == MASKED_LM:
        return not getattr(config, "is_decoder", False)
    return True


def _facts(config: Any, task: str, module: Any, by_type: bool) -> Facts:
    text = config.get_text_config()
    positions, learned = _positions(text, module)
    settings: dict[str, Any] = {"by_type": by_type}
    if learned:
        settings["learned_positions"] = True
    if task == SEQ2SEQ and getattr(config, "decoder_start_token_id", None) is None:
        settings["decoder_start"] = getattr(config, "pad_token_id", None) or 0
    if argument := _image_argument(config):
        settings["image_argument"] = argument
    images = _takes_images(module)
    return Facts(
        tasks=_tasks(task, module),
        image=_image(config) if images else None,
        channels=getattr(config, "num_channels", 3),
        classes=config.num_labels if task == CLASSIFICATION else None,
        vocabulary=None if images else getattr(text, "vocab_size", None),
        positions=None if images else positions,
        abilities=_abilities(module),
        settings=settings,
    )


def _tasks(task: str, module: Any) -> tuple[str, ...]:
    if task == INFERENCE:
        return (INFERENCE,)
    generates = (GENERATE,) if task in (CAUSAL_LM, SEQ2SEQ) and module.can_generate() else ()
    return (task, INFERENCE, *generates)


def _takes_images(module: Any) -> bool:
    return bool(module.main_input_name == "pixel_values")


def _image(config: Any) -> int:
    sizes = (getattr(each, "image_size", None) for each in (config, getattr(config, "vision_config", None)))
    size = next((each for each in sizes if each), 224)
    return int(size if isinstance(size, int) else size[0])


def _image_argument(config: Any) -> str | None:
    """The figure of the config that a model for images of another size must be made with."""
    if isinstance(getattr(config, "image_size", None), int):
        return "image_size"
    inner = getattr(config, "vision_config", None)
    return "vision_config.image_size" if isinstance(getattr(inner, "image_size", None), int) else None


def _positions(config: Any, module: Any) -> tuple[int | None, bool]:
    """The longest sequence, and whether nothing longer can go in: the table of positions ends there."""
    for name, child in module.named_modules():
        last = name.rpartition(".")[2]
        if type(child).__name__.endswith("Embedding") and (last == "wpe" or "position" in last):
            rows = getattr(child, "num_embeddings", None)
            if rows and "relative" not in last and "vision" not in name:
                return rows - _reserved(child), True
    return getattr(config, "max_position_embeddings", None), False


def _reserved(table: Any) -> int:
    """Rows of a table of positions that no position uses: Bart's first two, RoBERTa's up to the padding's."""
    padding = getattr(table, "padding_idx", None)
    return int(getattr(table, "offset", 0) or (0 if padding is None else padding + 1))


def _abilities(module: Any) -> tuple[str, ...]:
    switches = {
        "gradient_checkpointing": "supports_gradient_checkpointing",
        "sdpa": "_supports_sdpa",
        "flash": "_supports_flash_attn",
    }
    return ("eager", *(name for name, switch in switches.items() if getattr(module, switch, False)))
