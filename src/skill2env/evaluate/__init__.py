"""What a skill or a policy is worth on tasks: paired comparisons with intervals."""
