"""One update: sharing a beginning, dividing a batch, and numbers that are none."""

from pathlib import Path

import pytest

torch = pytest.importorskip("torch", reason="torch is not installed (extra `train`)")

from skill2env.train.dppo import DppoConfig, Reduction  # noqa: E402
from skill2env.train.local.policy import Policy  # noqa: E402
from skill2env.train.local.sampling import Ask, sample  # noqa: E402
from skill2env.train.local.update import Row, update  # noqa: E402

PROMPTS = {"a": (3, 4, 5, 6, 7), "b": (3, 8, 9)}


def rows_of(policy: Policy, gains: tuple[float, ...] = (1.0, -0.5, 0.25, -0.75)) -> list[Row]:
    asks = [(group, Ask(prompt, seed, 8)) for group, prompt in PROMPTS.items() for seed in range(len(gains))]
    made: list[Row] = []
    for at, ((group, ask), answer) in enumerate(
        zip(asks, sample(policy, [ask for _, ask in asks]), strict=True)
    ):
        many, few = len(ask.prompt), len(answer.tokens)
        made.append(
            Row((*ask.prompt, *answer.tokens), (False,) * many + (True,) * few,
                (0.0,) * many + tuple(answer.log_probs), gains[at % len(gains)], group, at)
        )  # fmt: skip
    return made


def gradient(policy: Policy, rows: list[Row], *, at_once: int, loss: DppoConfig) -> torch.Tensor:
    """What the optimizer is given, before anything is scaled down."""
    parameters = policy.choose_layers(None)
    seen: list[torch.Tensor] = []

    class Watching(torch.optim.SGD):
        def step(self, closure: object = None) -> None:  # type: ignore[override]
            del closure
            seen.append(torch.cat([item.grad.flatten() for item in parameters]))

    update(policy, Watching(parameters, lr=0.0), rows, loss, at_once=at_once, max_norm=1e9)
    return seen[0]


def plain(policy: Policy, rows: list[Row]) -> torch.Tensor:
    """The gradient by the formula, a row at a time, nothing shared: token-mean, on policy."""
    parameters = policy.choose_layers(None)
    total = sum(sum(row.mask) for row in rows)
    loss = torch.zeros(())
    for row in rows:
        table = policy.model(torch.tensor([row.tokens])).logits[0].float().log_softmax(-1)
        for at in range(1, len(row.tokens)):
            if row.mask[at]:
                lp = table[at - 1, row.tokens[at]]
                loss = loss - row.advantage * torch.exp(lp.detach() - row.log_probs[at]) * lp / total
    policy.model.zero_grad()
    loss.backward()
    return torch.cat([item.grad.flatten() for item in parameters])


@pytest.mark.parametrize("at_once", [1, 3, 16])
def test_the_gradient_is_that_of_the_formula(tiny: Path, at_once: int) -> None:
    policy = Policy.load(tiny)
    rows = rows_of(policy)
    assert torch.allclose(
        gradient(policy, rows, at_once=at_once, loss=DppoConfig()), plain(policy, rows), atol=2e-6
    )


def test_equal_answers_lose_nothing(tiny: Path) -> None:
    """What rows share may reach into the answer; those tokens are learned from all the same."""
    policy = Policy.load(tiny)
    row = rows_of(policy)[0]
    rows = [row, Row(row.tokens, row.mask, row.log_probs, 0.5, row.group, 99)]
    assert torch.allclose(
        gradient(policy, rows, at_once=8, loss=DppoConfig()), plain(policy, rows), atol=2e-6
    )


@pytest.mark.parametrize("reduction", list(Reduction))
def test_pieces_add_up(tiny: Path, reduction: Reduction) -> None:
    policy = Policy.load(tiny)
    rows, loss = rows_of(policy), DppoConfig(reduction=reduction)
    whole = gradient(policy, rows, at_once=16, loss=loss)
    assert whole.abs().max() > 0
    assert torch.allclose(gradient(policy, rows, at_once=2, loss=loss), whole, atol=2e-6)


def test_on_policy_nothing_is_masked_and_both_agree(tiny: Path) -> None:
    policy = Policy.load(tiny)
    rows = rows_of(policy)
    optimiser = torch.optim.AdamW(policy.choose_layers(None), lr=1e-2)
    first = update(policy, optimiser, rows, DppoConfig())
    assert first.tokens == sum(sum(row.mask) for row in rows)
    assert (first.masked, first.capped) == (0, 0)
    assert first.log_ratio < 1e-5
    assert first.entropy > 0
    # The same rows again are off policy now: what went far enough in its own direction is masked.
    for _ in range(10):
        later = update(policy, optimiser, rows, DppoConfig())
    assert later.log_ratio > 0.05
    assert later.masked > 0


def test_numbers_that_are_none_change_nothing(tiny: Path) -> None:
    policy = Policy.load(tiny)
    rows = [
        Row(row.tokens, row.mask, row.log_probs, float("nan"), row.group, row.rollout)
        for row in rows_of(policy)
    ]
    before = [item.clone() for item in policy.model.parameters()]
    made = update(policy, torch.optim.AdamW(policy.choose_layers(None), lr=1.0), rows, DppoConfig())
    assert not made.finite
    assert all(torch.equal(old, new) for old, new in zip(before, policy.model.parameters(), strict=True))


def test_only_the_chosen_layers_learn(tiny: Path) -> None:
    policy = Policy.load(tiny)
    rows = rows_of(policy)
    before = {name: item.clone() for name, item in policy.model.named_parameters()}
    update(policy, torch.optim.AdamW(policy.choose_layers(1), lr=1e-2), rows, DppoConfig())
    changed = {name for name, item in policy.model.named_parameters() if not torch.equal(item, before[name])}
    assert changed
    assert all(name.startswith(("model.layers.1.", "model.norm.")) for name in changed)
