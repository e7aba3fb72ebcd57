"""Advice that fits every task, the negative control of the fidelity probe: who finds skills by it is broken."""

import numpy as np

ADVICE: tuple[str, ...] = (
    "Read the whole request before you change anything, and say which part you start with.",
    "Look around in the working folder first and note what is already there.",
    "Break the work into small steps and finish one before the next begins.",
    "Keep a short list of open questions and settle each of them explicitly.",
    "Check the result against the request once more before you hand it in.",
    "Do not guess when you can look; prefer evidence over memory.",
    "Leave everything alone that you were not asked to touch.",
    "Prefer the simplest approach that meets every requirement.",
    "When something fails, find out why before you try something else.",
    "Write down assumptions where somebody else will find them.",
    "Do not claim success before you have seen it with your own eyes.",
    "Avoid doing the same thing twice by hand when it can be repeated safely.",
    "Stay within the limits of time and space that you were given.",
    "Make sure that a second run gives the same outcome as the first.",
    "Keep names and layout consistent with what is there.",
    "Never hide a problem; report what remains open.",
    "Use clear words and avoid unnecessary length.",
    "Handle unusual and empty inputs as carefully as ordinary ones.",
    "Do not remove information that someone may still need.",
    "Verify intermediate results so that mistakes surface early.",
)
PER_TASK = 3


def draw_advice(tasks: int, seed: int) -> "np.ndarray[tuple[int, int], np.dtype[np.float32]]":
    """Which pieces of advice stand for the rubric of each task: ones and zeros, shape (tasks, len(ADVICE))."""
    rng = np.random.default_rng(seed)
    mixed = np.zeros((tasks, len(ADVICE)), dtype=np.float32)
    order = np.argsort(rng.random((tasks, len(ADVICE))), axis=1)[:, :PER_TASK]
    np.put_along_axis(mixed, order, 1.0, axis=1)
    return mixed
