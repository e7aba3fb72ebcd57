"""The loss against worked tables, a float64 reference that follows the definition, and autograd."""

import math
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

torch = pytest.importorskip("torch", reason="torch is not installed (extra `train`)")

from skill2env.train.dppo import (  # noqa: E402
    Divergence,
    DppoConfig,
    MaskMode,
    Reduction,
    binary_divergence,
    dppo_loss,
    token_weights,
    totals_of,
)

KL = Divergence.BINARY_KL
TV = Divergence.BINARY_TV
OFF = None

# (mu, pi, A, binary KL, kept under KL, binary TV, kept under TV, gradient times N without a cap)
TABLE = [
    (0.5, 0.6, 1, 0.020411, 1, 0.10, 1, -1.2),
    (0.5, 0.7, 1, 0.087177, 0, 0.20, 0, 0.0),
    (0.5, 0.7, -1, 0.087177, 1, 0.20, 1, 1.4),
    (0.9, 0.7, -1, 0.116322, 0, 0.20, 0, 0.0),
    (0.001, 0.010, 1, 0.006738, 1, 0.009, 1, -10.0),
    (0.010, 0.001, -1, 0.014067, 1, 0.009, 1, 0.1),
    (0.98, 0.999, 1, 0.041096, 1, 0.019, 1, -0.999 / 0.98),
    (0.0001, 0.003, 1, 0.002564, 1, 0.0029, 1, -30.0),
    (0.9, 0.7, 1, 0.116322, 1, 0.20, 1, -0.7 / 0.9),
]
OBSERVATION = (0.5, 0.99, 1)
EDGES = [
    (0.99, 0.90, -1, 0.071331, 0, 0.09, 1),
    (0.50, 0.652, 1, 0.048485, 1, 0.152, 0),
    (0.3, 0.3, 1, 0.0, 1, 0.0, 1),
    (0.5, 0.9, 0, 0.510826, 1, 0.4, 1),
    (1.0, 0.9, -1, 0.105361, 0, 0.1, 1),
    (0.9, 1.0, 1, None, 0, 0.1, 1),
]


def logs(values: Sequence[float], dtype: "torch.dtype" = torch.float64) -> "torch.Tensor":
    return torch.tensor([math.log(value) for value in values], dtype=dtype)


def run(
    mu: "torch.Tensor", pi: "torch.Tensor", gain: "torch.Tensor", weights: "torch.Tensor", config: DppoConfig
) -> tuple[float, "torch.Tensor"]:
    leaf = pi.clone().requires_grad_()
    loss, _ = dppo_loss(leaf, mu, gain, weights, config)
    loss.backward()
    assert leaf.grad is not None
    return loss.item(), leaf.grad


def table(dtype: "torch.dtype" = torch.float64) -> tuple["torch.Tensor", ...]:
    rows = [*(row[:3] for row in TABLE), OBSERVATION]
    mask = torch.tensor([[True] * len(TABLE) + [False]])
    weights = token_weights(mask, Reduction.TOKEN_MEAN).to(dtype)
    return (
        logs([row[0] for row in rows], dtype).unsqueeze(0),
        logs([row[1] for row in rows], dtype).unsqueeze(0),
        torch.tensor([[float(row[2]) for row in rows]], dtype=dtype),
        weights,
    )


@pytest.mark.parametrize("kind", [KL, TV])
@pytest.mark.parametrize("dtype", [torch.float64, torch.float32], ids=str)
@pytest.mark.parametrize(("cap", "loss"), [(None, 24.447477), (20.0, 17.992874), (10.0, 11.538271)])
def test_the_worked_table(kind: Divergence, dtype: "torch.dtype", cap: float | None, loss: float) -> None:
    value, grad = run(*table(dtype), DppoConfig(divergence=kind, ratio_cap=cap))
    assert value == pytest.approx(loss, abs=5e-7 if dtype == torch.float64 else 1e-5)
    wanted = [math.copysign(min(abs(row[7]), cap or math.inf), row[7]) for row in TABLE]
    assert (grad[0] * len(TABLE)).tolist() == pytest.approx([*wanted, 0.0], abs=1e-6, rel=1e-6)
    assert grad[0, -1] == 0


@pytest.mark.parametrize(
    ("mu", "pi", "kl", "tv"), [(row[0], row[1], row[3], row[5]) for row in [*TABLE, *EDGES]]
)
@pytest.mark.parametrize("dtype", [torch.float64, torch.float32], ids=str)
def test_divergences(mu: float, pi: float, kl: float | None, tv: float, dtype: "torch.dtype") -> None:
    first, second = logs([mu], dtype), logs([pi], dtype)
    assert binary_divergence(first, second, TV).item() == pytest.approx(tv, abs=1e-6)
    found = binary_divergence(first, second, KL).item()
    assert found > 0.5 if kl is None else found == pytest.approx(kl, abs=1e-6)
    assert math.isfinite(found)


@pytest.mark.parametrize("row", EDGES, ids=str)
def test_where_the_two_divergences_disagree(row: tuple[float, ...]) -> None:
    mu, pi, gain, _, keep_kl, _, keep_tv = row
    for kind, keep in ((KL, keep_kl), (TV, keep_tv)):
        config = DppoConfig(divergence=kind, ratio_cap=None)
        _, grad = run(
            logs([mu]), logs([pi]), torch.tensor([gain], dtype=torch.float64), torch.ones(1), config
        )
        assert grad.item() == pytest.approx(-gain * pi / mu * keep, abs=1e-6)


def test_the_symmetric_mask_also_holds_tokens_on_their_way_back() -> None:
    value, grad = run(*table(), DppoConfig(mask=MaskMode.SYMMETRIC, ratio_cap=None))
    wanted = [row[7] if at not in (2, 8) else 0.0 for at, row in enumerate(TABLE)]
    assert (grad[0] * len(TABLE)).tolist() == pytest.approx([*wanted, 0.0], abs=1e-6, rel=1e-6)
    # The sum of -A pi/mu over kept tokens, which implementations that differentiate the ratio report as their loss.
    ratios = [-row[2] * row[1] / row[0] for at, row in enumerate(TABLE) if row[4] and at not in (2, 8)]
    assert math.fsum(ratios) / len(TABLE) == pytest.approx(-4.679932, abs=1e-6)
    assert value == pytest.approx(
        math.fsum(
            r * math.log(TABLE[at][1])
            for at, r in zip(
                [at for at, row in enumerate(TABLE) if row[4] and at not in (2, 8)], ratios, strict=True
            )
        )
        / 9,
        abs=1e-6,
    )


def test_a_token_at_the_bound_is_kept() -> None:
    mu, pi = torch.tensor([math.log(0.25)]), torch.tensor([math.log(0.5)])
    weights, gain = torch.ones(1), torch.ones(1)
    distance = binary_divergence(mu, pi, TV).item()
    _, at = run(mu, pi, gain, weights, DppoConfig(divergence=TV, delta_low=distance, delta_high=distance))
    _, below = run(
        mu, pi, gain, weights, DppoConfig(divergence=TV, delta_low=0.01, delta_high=distance * 0.999)
    )
    assert at.item() == pytest.approx(-2.0, abs=1e-6)
    assert below.item() == 0


def test_low_and_high_bounds_go_by_the_sign_of_the_advantage() -> None:
    mu, pi = logs([0.5, 0.5]), logs([0.7, 0.3])
    gain = torch.tensor([1.0, -1.0], dtype=torch.float64)
    only_up = DppoConfig(delta_high=0.5, delta_low=0.01, ratio_cap=None)
    only_down = DppoConfig(delta_high=0.01, delta_low=0.5, ratio_cap=None)
    assert run(mu, pi, gain, torch.ones(2), only_up)[1].tolist() == pytest.approx([-1.4, 0.0])
    assert run(mu, pi, gain, torch.ones(2), only_down)[1].tolist() == pytest.approx([0.0, 0.6])


C_MASK = torch.tensor([[True, True, True], [True, False, False]])


@pytest.mark.parametrize(
    ("reduction", "loss", "grads"),
    [
        (Reduction.TOKEN_MEAN, 0.024954, [-0.15, 0, -0.09722, 0.0125]),
        (Reduction.SEQUENCE_MEAN_TOKEN_SUM, 0.049907, [-0.3, 0, -0.194444, 0.025]),
        (Reduction.SEQUENCE_MEAN_TOKEN_MEAN, -0.098493, [-0.1, 0, -0.06481, 0.025]),
        (Reduction.SEQUENCE_MEAN_TOKEN_SUM_NORM, 0.016636, [-0.1, 0, -0.064815, 0.0083333]),
    ],
)
def test_reductions(reduction: Reduction, loss: float, grads: list[float]) -> None:
    mu = torch.tensor([[0.5, 0.5, 0.9], [0.01, 1, 1]], dtype=torch.float64).log()
    pi = torch.tensor([[0.6, 0.7, 0.7], [0.001, 1, 1]], dtype=torch.float64).log()
    gain = torch.tensor([[0.5], [-0.5]], dtype=torch.float64)
    value, grad = run(mu, pi, gain, token_weights(C_MASK, reduction).double(), DppoConfig())
    assert value == pytest.approx(loss, abs=1e-6)
    assert [*grad[0].tolist(), grad[1, 0].item()] == pytest.approx(grads, abs=5e-6)
    assert grad[1, 1:].tolist() == [0, 0]


@pytest.mark.parametrize("reduction", list(Reduction))
def test_pieces_of_a_batch_add_up_to_the_batch(reduction: Reduction) -> None:
    generator = torch.Generator().manual_seed(5)
    shape = (6, 11)
    mu, pi = (-torch.rand(shape, generator=generator).double() * 4 for _ in range(2))
    gain = torch.randn((6, 1), generator=generator).double()
    mask = torch.rand(shape, generator=generator) < 0.7
    rollout = torch.tensor([0, 0, 1, 2, 2, 3])
    whole, grad = run(mu, pi, gain, token_weights(mask, reduction, sequences=rollout).double(), DppoConfig())
    totals = totals_of(mask[:2], rollout[:2]) + totals_of(mask[2:], rollout[2:])
    assert totals == totals_of(mask, rollout)
    summed, pieces = 0.0, []
    for rows in (slice(0, 2), slice(2, 6)):
        weights = token_weights(mask[rows], reduction, sequences=rollout[rows], totals=totals).double()
        value, piece = run(mu[rows], pi[rows], gain[rows], weights, DppoConfig())
        summed += value
        pieces.append(piece)
    assert summed == pytest.approx(whole, abs=1e-7)
    assert torch.allclose(torch.cat(pieces), grad, atol=1e-9)


@pytest.mark.parametrize(
    "reduction", [Reduction.TOKEN_MEAN, Reduction.SEQUENCE_MEAN_TOKEN_SUM, Reduction.SEQUENCE_MEAN_TOKEN_MEAN]
)
def test_dividing_a_rollout_into_segments_changes_nothing(reduction: Reduction) -> None:
    """Two rollouts of 4 and 2 tokens: in two rows, and with the first one divided into rows of 3 and 1."""
    whole = token_weights(torch.tensor([[1, 1, 1, 1], [1, 1, 0, 0]]), reduction)
    divided = token_weights(
        torch.tensor([[1, 1, 1, 0], [1, 0, 0, 0], [1, 1, 0, 0]]), reduction, sequences=torch.tensor([0, 0, 1])
    )
    assert sorted(whole[whole > 0].tolist()) == pytest.approx(sorted(divided[divided > 0].tolist()))


def test_padding_may_hold_anything() -> None:
    bad = float("nan")
    mu = torch.tensor([[-0.5, bad, float("-inf")]])
    pi = torch.tensor([[-0.4, float("-inf"), bad]])
    gain = torch.tensor([[1.0, bad, float("inf")]])
    value, grad = run(
        mu, pi, gain, token_weights(torch.tensor([[1, 0, 0]]), Reduction.TOKEN_MEAN), DppoConfig()
    )
    assert value == pytest.approx(math.exp(0.1) * 0.4, rel=1e-6)
    assert grad[0].tolist() == pytest.approx([-math.exp(0.1), 0, 0], rel=1e-6)


def test_a_batch_in_which_nothing_was_sampled() -> None:
    for reduction in Reduction:
        weights = token_weights(torch.zeros(2, 3), reduction)
        value, grad = run(torch.zeros(2, 3), torch.zeros(2, 3), torch.ones(2, 1), weights, DppoConfig())
        assert (value, grad.abs().sum().item()) == (0, 0)


def test_what_is_counted() -> None:
    mu, pi, gain, weights = table()
    _, stats = dppo_loss(pi, mu, gain, weights, DppoConfig(ratio_cap=20))
    assert (stats.tokens.item(), stats.masked.item(), stats.capped.item()) == (9, 2, 1)
    assert stats.divergence.item() == pytest.approx(sum(row[3] for row in TABLE), abs=1e-5)
    wanted = sum(abs(math.log(row[1] / row[0])) for row in TABLE)
    assert stats.log_ratio.item() == pytest.approx(wanted, abs=1e-9)


def test_half_precision_is_computed_in_single() -> None:
    mu, pi, gain, weights = table(torch.float32)
    leaf = pi.to(torch.bfloat16).requires_grad_()
    loss, _ = dppo_loss(leaf, mu, gain, weights, DppoConfig())
    assert loss.dtype == torch.float32
    loss.backward()
    assert leaf.grad is not None
    assert leaf.grad.dtype == torch.bfloat16


# ---------------------------------------------------------------------------------------------- properties


def reference(mu: float, pi: float, gain: float, config: DppoConfig) -> tuple[float, float]:
    """(factor of log pi, divergence) of one token, by the definition, in float64."""
    p, q = math.exp(mu), math.exp(pi)
    if config.divergence is TV:
        distance = abs(q - p)
    else:
        distance = p * (mu - pi) + (-math.expm1(mu)) * math.log(math.expm1(mu) / math.expm1(pi))
    far = distance > (config.high if gain > 0 else config.low)
    away = (gain > 0 and pi > mu) or (gain < 0 and pi < mu)
    if far and (away or config.mask is MaskMode.SYMMETRIC):
        return 0.0, distance
    ratio = math.exp(max(-20.0, min(20.0, pi - mu)))
    return -gain * (ratio if config.ratio_cap is None else min(ratio, config.ratio_cap)), distance


log_prob = st.floats(-12, -1e-4)
tokens = st.lists(
    st.tuples(log_prob, log_prob, st.floats(-3, 3).filter(lambda a: a == 0 or abs(a) > 1e-6)),
    min_size=1,
    max_size=12,
)
configs = st.builds(
    DppoConfig,
    divergence=st.sampled_from([KL, TV]),
    delta_low=st.sampled_from([None, 0.01, 0.2]),
    delta_high=st.sampled_from([None, 0.02, 0.3]),
    mask=st.sampled_from(list(MaskMode)),
    ratio_cap=st.sampled_from([None, 1.0, 20.0]),
)


@given(tokens, configs)
def test_gradients_follow_the_definition(batch: list[tuple[float, float, float]], config: DppoConfig) -> None:
    wanted, distances = zip(*(reference(mu, pi, gain, config) for mu, pi, gain in batch), strict=True)
    near = [
        any(abs(distance - bound) < 1e-6 for bound in (config.low, config.high)) or abs(mu - pi) < 1e-9
        for distance, (mu, pi, _) in zip(distances, batch, strict=True)
    ]
    mu, pi, gain = (torch.tensor(column, dtype=torch.float64) for column in zip(*batch, strict=True))
    weights = torch.full((len(batch),), 1 / len(batch), dtype=torch.float64)
    value, grad = run(mu, pi, gain, weights, config)
    clear = [at for at in range(len(batch)) if not near[at]]
    assert [grad[at].item() * len(batch) for at in clear] == pytest.approx(
        [wanted[at] for at in clear], rel=1e-6, abs=1e-9
    )
    if len(clear) == len(batch):
        total = math.fsum(factor * row[1] for factor, row in zip(wanted, batch, strict=True)) / len(batch)
        assert value == pytest.approx(total, rel=1e-6, abs=1e-8)


@given(tokens, configs)
def test_single_precision_agrees_with_double(
    batch: list[tuple[float, float, float]], config: DppoConfig
) -> None:
    distances = [reference(mu, pi, gain, config)[1] for mu, pi, gain in batch]
    if any(abs(d - bound) < 1e-4 for d in distances for bound in (config.low, config.high)):
        return
    if any(abs(mu - pi) < 1e-5 for mu, pi, _ in batch):
        return
    columns = list(zip(*batch, strict=True))
    weights = torch.full((len(batch),), 1 / len(batch))
    grads = [
        run(*(torch.tensor(column, dtype=dtype) for column in columns), weights.to(dtype), config)[1]
        for dtype in (torch.float32, torch.float64)
    ]
    assert torch.allclose(grads[0].double(), grads[1], rtol=1e-4, atol=1e-7)


@given(tokens)
def test_on_the_sampling_policy_the_loss_is_the_plain_policy_gradient(
    batch: list[tuple[float, float, float]],
) -> None:
    mu = torch.tensor([row[0] for row in batch], dtype=torch.float64)
    gain = torch.tensor([row[2] for row in batch], dtype=torch.float64)
    _, grad = run(mu, mu, gain, torch.ones(len(batch)), DppoConfig())
    assert torch.allclose(grad, -gain, atol=1e-9)


@given(st.lists(st.tuples(log_prob, log_prob), min_size=1, max_size=20), st.sampled_from([KL, TV]))
def test_divergences_are_never_negative_and_vanish_only_at_home(
    pairs: list[tuple[float, float]], kind: Divergence
) -> None:
    mu, pi = (torch.tensor(column, dtype=torch.float64) for column in zip(*pairs, strict=True))
    found = binary_divergence(mu, pi, kind)
    assert bool((found >= 0).all())
    assert binary_divergence(mu, mu, kind).abs().max().item() < 1e-12
