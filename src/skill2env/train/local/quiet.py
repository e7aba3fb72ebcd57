"""Transformers without its progress bars and advice, which would end up between our own lines."""

from typing import Any

from skill2env.errors import UserError


def quiet_transformers() -> tuple[Any, Any]:
    """``AutoModelForCausalLM`` and ``AutoTokenizer``.

    Raises:
        UserError: the extra is missing.
    """
    try:
        from transformers import AutoModelForCausalLM, AutoTokenizer
        from transformers.utils import logging
    except ImportError as error:
        raise UserError(
            "training needs Transformers and torch", hint="pip install 'skill2env[train]'"
        ) from error
    logging.disable_progress_bar()
    logging.set_verbosity_error()
    return AutoModelForCausalLM, AutoTokenizer
