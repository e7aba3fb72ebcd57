"""Stage 1, folder -> Skill: tolerant reading of a skill, with a diagnostic for everything unusual."""
