"""Stage 4, TaskSpec -> Candidate: two authoring sessions with the sealed grading contract between them."""
