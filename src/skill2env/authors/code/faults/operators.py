"""The catalogue of faults: small, plausible slips, each a deterministic edit of one place in the syntax tree.

An operator sees one node in its function and yields replacements. It never invents names, so that a fault shows as
wrong behaviour and not as an exception. `sites.find_sites` applies all of them to all places of a module.
"""

from skill2env.authors.code.faults import amounts, logic, memory, structures, surroundings, texts
from skill2env.authors.code.faults.catalog import Kind, Operator

OPERATORS: tuple[tuple[Kind, Operator], ...] = (
    (Kind.BOUNDARY, amounts.boundary),
    (Kind.OFF_BY_ONE, amounts.off_by_one),
    (Kind.SIGN, amounts.sign),
    (Kind.SCALE, amounts.scale),
    (Kind.THRESHOLD, amounts.threshold),
    (Kind.DEFAULT, logic.default),
    (Kind.ORDERING, structures.ordering),
    (Kind.CONNECTIVE, logic.connective),
    (Kind.MISSING_CASE, logic.missing_case),
    (Kind.AGGREGATE, amounts.aggregate),
    (Kind.TEXT, texts.text),
    (Kind.ROUNDING, amounts.rounding),
    (Kind.EARLY_EXIT, logic.early_exit),
    (Kind.ACCUMULATE, structures.accumulate),
    (Kind.ALIAS, structures.alias),
    (Kind.SPLITTING, texts.splitting),
    (Kind.WRONG_KEY, structures.wrong_key),
    (Kind.SWAPPED, structures.swapped),
    (Kind.FALLBACK, logic.fallback),
    (Kind.PATTERN, texts.pattern),
    (Kind.SET_LOGIC, logic.set_logic),
    (Kind.ENCODING, texts.encoding),
    (Kind.SEPARATOR, texts.separator),
    (Kind.TIME_ZONE, surroundings.time_zone),
    (Kind.CALENDAR, surroundings.calendar),
    (Kind.ERROR_PATH, surroundings.error_path),
    (Kind.RESOURCE, surroundings.resource),
    (Kind.CACHE, memory.cache),
    (Kind.MERGE_KEY, memory.merge_key),
    (Kind.PRECEDENCE, memory.precedence),
    (Kind.NUMBER_AS_TEXT, surroundings.number_as_text),
    (Kind.NONE_OR_EMPTY, logic.none_or_empty),
    (Kind.FILTER, logic.filtering),
)
"""Every kind with its operator; of two that make the same edit the first names it."""
