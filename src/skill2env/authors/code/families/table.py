"""All families, and the order in which a skill's workflows are offered."""

from itertools import zip_longest

from skill2env.authors.code.families import checks, migrate, operate, rebuild, repair
from skill2env.authors.code.families.base import Family, Offer
from skill2env.authors.code.study import Study
from skill2env.records import Skill

FAMILIES: tuple[Family, ...] = (repair.FAMILY, rebuild.FAMILY, migrate.FAMILY, checks.FAMILY, operate.FAMILY)


def all_offers(skill: Skill, found: Study) -> list[tuple[Family, Offer]]:
    """Every workflow of a skill with its family: one of each family in turn, so that any number of them is mixed.

    Which family begins depends on the skill's digest, so that over many skills all begin equally often.
    """
    start = int(skill.digest[-6:], 16) % len(FAMILIES)
    turned = (*FAMILIES[start:], *FAMILIES[:start])
    columns = [[(family, offer) for offer in family.offers(skill, found)] for family in turned]
    return [pair for row in zip_longest(*columns) for pair in row if pair is not None]
