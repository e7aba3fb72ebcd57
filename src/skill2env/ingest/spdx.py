"""From words to SPDX: short statements such as ``MIT License``, and whole licence texts."""

# ruff: noqa: E501  # tables: one line an entry

import functools
import re
from typing import Any

PROPRIETARY = "LicenseRef-Proprietary"
_ALIASES = {
    "mit": "MIT",
    "expat": "MIT",
    "apache": "Apache-2.0",
    "apache2": "Apache-2.0",
    "apache 2": "Apache-2.0",
    "apache 2.0": "Apache-2.0",
    "apache v2": "Apache-2.0",
    "apache software": "Apache-2.0",
    "apache software 2.0": "Apache-2.0",
    "bsd": "BSD-3-Clause",
    "bsd 3": "BSD-3-Clause",
    "bsd 3 clause": "BSD-3-Clause",
    "new bsd": "BSD-3-Clause",
    "bsd 2 clause": "BSD-2-Clause",
    "isc": "ISC",
    "gpl": "GPL-3.0-only",
    "gplv3": "GPL-3.0-only",
    "gpl v3": "GPL-3.0-only",
    "gplv2": "GPL-2.0-only",
    "gpl v2": "GPL-2.0-only",
    "agplv3": "AGPL-3.0-only",
    "lgplv3": "LGPL-3.0-only",
    "mpl 2.0": "MPL-2.0",
    "cc0": "CC0-1.0",
    "cc by": "CC-BY-4.0",
    "cc by 4.0": "CC-BY-4.0",
    "cc by sa 4.0": "CC-BY-SA-4.0",
    "cc by nc 4.0": "CC-BY-NC-4.0",
    "cc by nc sa 4.0": "CC-BY-NC-SA-4.0",
    "creative commons attribution 4.0": "CC-BY-4.0",
    "creative commons attribution 4.0 international": "CC-BY-4.0",
    "unlicense": "Unlicense",
    "the unlicense": "Unlicense",
    "public domain": "CC0-1.0",
    "unlicensed": PROPRIETARY,  # npm's word for "no rights granted"
    "commercial": PROPRIETARY,
    "none": "",
    "unknown": "",
}
_ADDRESSES = (
    ("opensource.org/licenses/mit", "MIT"),
    ("opensource.org/license/mit", "MIT"),
    ("apache.org/licenses/license-2.0", "Apache-2.0"),
    ("creativecommons.org/publicdomain/zero", "CC0-1.0"),
    ("creativecommons.org/licenses/by/4.0", "CC-BY-4.0"),
    ("creativecommons.org/licenses/by-sa/4.0", "CC-BY-SA-4.0"),
)
_REFUSAL = re.compile(
    r"\bproprietary\b|\ball rights reserved\b|\bcommercial (?:use|licen[cs]e) only\b", re.IGNORECASE
)
_NOISE = re.compile(r"\b(?:the|license[ds]?|licence[ds]?|version|under)\b|[(),;\"'`]", re.IGNORECASE)
_RESTRICTIVE = re.compile(
    r"\b(?:[AL]?GPL|EUPL|OSL|SSPL|BUSL|Elastic|PolyForm|CC-BY-\w*-?(?:SA|NC|ND))|-(?:SA|NC|ND)-",
    re.IGNORECASE,
)
MAX_STATEMENT_CHARS = 200


@functools.lru_cache(maxsize=4096)
def normalise(statement: str) -> str:
    """SPDX expression of a short statement; `PROPRIETARY` for a refusal, empty when it is not understood."""
    text = " ".join(statement.split()).strip(" .\"'`*")
    if not text or len(text) > MAX_STATEMENT_CHARS:
        return ""
    lowered = text.lower()
    for address, spdx in _ADDRESSES:
        if address in lowered:
            return spdx
    for candidate in (
        text,
        re.split(r"\s*(?:[(;:]|\bsee\b|\bcomplete terms\b|\bplease\b| - | — )", text, maxsplit=1)[0],
    ):
        plain = " ".join(_NOISE.sub(" ", candidate.lower()).replace("-", " ").split())
        if plain in _ALIASES:
            return _ALIASES[plain]
        expression = _expression(candidate) or _expression(
            re.sub(r"\s+licen[cs]e$", "", candidate, flags=re.I)
        )
        if expression:
            return expression
    return PROPRIETARY if _REFUSAL.search(text) else ""


def _expression(text: str) -> str:
    text = re.sub(r"\s*[/|]\s*", " OR ", text.strip())
    text = re.sub(r"\b(and|or|with)\b", lambda match: match[0].upper(), text)
    if not re.fullmatch(r"[A-Za-z0-9.+() -]{2,120}", text):
        return ""
    try:
        parsed: Any = _licensing().parse(text, validate=True, strict=False)
    except Exception:
        # Its own error tree, and plain errors of Python on odd input; either means "no SPDX expression".
        return ""
    return "" if parsed is None else str(parsed)


@functools.cache
def _licensing() -> Any:
    from license_expression import get_spdx_licensing

    return get_spdx_licensing()


def is_restrictive(spdx: str) -> bool:
    """Copyleft, share-alike, non-commercial, no-derivatives and source-available terms."""
    return bool(_RESTRICTIVE.search(spdx))


# Titles are looked for at the beginning only, because the GNU texts name each other; grants anywhere.
_TITLES = (
    ("AGPL-3.0-only", "gnu affero general public license"),
    ("LGPL-3.0-only", "gnu lesser general public license version 3"),
    ("LGPL-2.1-only", "gnu lesser general public license version 2.1"),
    ("GPL-3.0-only", "gnu general public license version 3"),
    ("GPL-2.0-only", "gnu general public license version 2"),
    ("MPL-2.0", "mozilla public license version 2.0"),
    ("CC0-1.0", "cc0 1.0 universal"),
    ("CC-BY-NC-SA-4.0", "attribution-noncommercial-sharealike 4.0"),
    ("CC-BY-NC-ND-4.0", "attribution-noncommercial-noderivatives 4.0"),
    ("CC-BY-NC-4.0", "attribution-noncommercial 4.0"),
    ("CC-BY-SA-4.0", "attribution-sharealike 4.0"),
    ("CC-BY-4.0", "attribution 4.0 international"),
    ("PolyForm-Noncommercial-1.0.0", "polyform noncommercial license"),
    ("BUSL-1.1", "business source license 1.1"),
    ("Elastic-2.0", "elastic license 2.0"),
)
_GRANTS = (
    ("Apache-2.0", r"apache license,? version 2\.0|apache\.org/licenses/license-2\.0"),
    ("BSD-3-Clause", r"redistribution and use in source and binary forms.{0,1500}neither the name"),
    ("BSD-2-Clause", r"redistribution and use in source and binary forms"),
    ("ISC", r"permission to use, copy, modify, and/?(?:or)? distribute this software for any purpose with or without fee is hereby granted, provided"),
    ("0BSD", r"permission to use, copy, modify, and/?(?:or)? distribute this software for any purpose with or without fee is hereby granted\."),
    ("MIT-0", r"permission is hereby granted, free of charge, to any person obtaining a copy.{0,600}so\. the software is provided"),
    ("MIT", r"permission is hereby granted, free of charge, to any person obtaining a copy"),
    ("Unlicense", r"this is free and unencumbered software released into the public domain"),
    (PROPRIETARY, r"may not:? (?:- )?(?:copy|reproduce|distribute|extract|retain)|\bproprietary\b|all rights reserved"),
)  # fmt: skip
_TITLE_CHARS = 600


def recognise(text: str) -> str:
    """SPDX id of a licence text; empty when none is recognised. Texts of several licences give the first."""
    plain = " ".join(re.sub(r"[#*_=>]+", " ", text[:200_000].lower()).split())
    tagged = re.search(r"spdx-license-identifier: ([\w.+() -]{2,100})", plain)
    if tagged:
        return normalise(tagged[1])
    beginning = plain[:_TITLE_CHARS].replace(", version", " version")
    for spdx, title in _TITLES:
        if title in beginning:
            return spdx
    for spdx, grant in _GRANTS:
        if re.search(grant, plain):
            return spdx
    first = next((line for line in text.split("\n") if line.strip()), "")
    return normalise(first) if len(plain) < 400 else ""
