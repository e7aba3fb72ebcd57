"""Sampling: log-probabilities are the policy's own, whatever else is in the batch."""

from pathlib import Path

import pytest

torch = pytest.importorskip("torch", reason="torch is not installed (extra `train`)")

from skill2env.train.local.policy import Policy  # noqa: E402
from skill2env.train.local.sampling import Ask, sample  # noqa: E402

SHORT, LONG = (3, 4, 5), (3, 4, 6, 7, 8, 9, 4, 5)


def exact(
    policy: Policy, prompt: tuple[int, ...], tokens: list[int], temperature: float = 1.0
) -> list[float]:
    """Log-probabilities of an answer by one plain pass over the whole sequence."""
    ids = torch.tensor([[*prompt, *tokens]])
    with torch.no_grad():
        table = (policy.model(ids).logits[0].float() / temperature).log_softmax(-1)
    return [float(table[len(prompt) - 1 + at, token]) for at, token in enumerate(tokens)]


def test_log_probabilities_are_those_of_a_plain_pass(tiny: Path) -> None:
    policy = Policy.load(tiny)
    asks = [Ask(prompt, seed, 12, 0.7) for prompt in (SHORT, LONG) for seed in range(4)]
    for ask, answer in zip(asks, sample(policy, asks), strict=True):
        assert 0 < len(answer.tokens) <= 12
        assert answer.log_probs == pytest.approx(exact(policy, ask.prompt, answer.tokens, 0.7), abs=1e-4)


def test_an_answer_depends_on_its_request_alone(tiny: Path) -> None:
    policy = Policy.load(tiny)
    asks = [Ask(prompt, seed, 10) for prompt in (SHORT, LONG) for seed in range(3)]
    together = sample(policy, asks)
    assert [item.tokens for item in sample(policy, asks[::-1])] == [item.tokens for item in together][::-1]
    assert [sample(policy, [ask])[0].tokens for ask in asks] == [item.tokens for item in together]
    assert len({tuple(item.tokens) for item in together}) > 3


def test_ends(tiny: Path) -> None:
    policy = Policy.load(tiny)
    (end,) = policy.ends
    free = sample(policy, [Ask(SHORT, seed, 30) for seed in range(12)])
    for answer in free:
        assert answer.finish == ("stop" if answer.tokens[-1] == end else "length")
        assert end not in answer.tokens[:-1]
    stopped = sample(policy, [Ask(SHORT, seed, 30, 1.0, (";",)) for seed in range(12)])
    assert any(";" in item.text for item in free)
    assert not any(";" in item.text for item in stopped)
    (cut,) = [policy.decode(item.tokens) for item in stopped if ";" in policy.decode(item.tokens)][:1]
    assert cut.endswith(";")  # the token that completed the stop text was sampled, so it is learned from


def test_no_temperature_takes_the_likeliest(tiny: Path) -> None:
    policy = Policy.load(tiny)
    one, other = sample(policy, [Ask(LONG, seed, 6, 0.0) for seed in (1, 2)])
    assert one.tokens == other.tokens
    ids = torch.tensor([list(LONG)])
    assert one.tokens[0] == int(policy.model(ids).logits[0, -1].argmax())


def test_a_broken_policy_is_told(tiny: Path) -> None:
    policy = Policy.load(tiny)
    with torch.no_grad():
        policy.model.model.norm.weight.fill_(float("nan"))
    with pytest.raises(FloatingPointError, match="no numbers"):
        sample(policy, [Ask(SHORT)])
