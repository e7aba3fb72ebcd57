import pytest

torch = pytest.importorskip("torch", reason="torch is not installed (extra `train`)")

from skill2env.train.log_probs import entropies, head_log_probs, selected_log_probs  # noqa: E402


def sample(dtype: "torch.dtype") -> tuple["torch.Tensor", "torch.Tensor", "torch.Tensor", "torch.Tensor"]:
    generator = torch.Generator().manual_seed(3)
    hidden = torch.randn((13, 8), generator=generator).to(dtype)
    head = torch.randn((29, 8), generator=generator).to(dtype)
    tokens = torch.randint(29, (13,), generator=generator)
    grad = torch.randn((13,), generator=generator)
    return hidden, head, tokens, grad


def plain(
    logits: "torch.Tensor", tokens: "torch.Tensor", temperature: float
) -> tuple["torch.Tensor", "torch.Tensor"]:
    table = (logits / temperature).log_softmax(-1)
    return table.gather(-1, tokens.unsqueeze(-1)).squeeze(-1), -(table.exp() * table).sum(-1)


@pytest.mark.parametrize("temperature", [1.0, 0.7])
@pytest.mark.parametrize("rows", [1, 4, 13, 100])
def test_slices_equal_the_whole_with_gradients(temperature: float, rows: int) -> None:
    hidden, head, tokens, grad = sample(torch.float64)
    first = [hidden.clone().requires_grad_(), head.clone().requires_grad_()]
    second = [hidden.clone().requires_grad_(), head.clone().requires_grad_()]
    third = [hidden.clone().requires_grad_(), head.clone().requires_grad_()]
    wanted, entropy = plain(first[0] @ first[1].T, tokens, temperature)
    wanted.backward(grad.double())
    logits = second[0] @ second[1].T
    results = [
        (
            selected_log_probs(logits, tokens, temperature=temperature, rows=rows),
            entropies(logits, temperature=temperature, rows=rows),
        ),
        head_log_probs(third[0], third[1], tokens, temperature=temperature, rows=rows),
    ]
    for (found, found_entropy), leaves in zip(results, (second, third), strict=True):
        assert torch.allclose(found, wanted, atol=1e-12)
        assert torch.allclose(found_entropy, entropy, atol=1e-12)
        assert not found_entropy.requires_grad
        found.backward(grad.double())
        for mine, theirs in zip(leaves, first, strict=True):
            assert mine.grad is not None
            assert theirs.grad is not None
            assert torch.allclose(mine.grad, theirs.grad, atol=1e-12)


def test_autograd_agrees_with_finite_differences() -> None:
    hidden, head, tokens, _ = sample(torch.float64)
    leaves = (hidden.requires_grad_(), head.requires_grad_())
    assert torch.autograd.gradcheck(lambda a, b: head_log_probs(a, b, tokens, rows=5)[0], leaves)


def test_half_precision_loses_nothing_behind_the_model() -> None:
    hidden, head, tokens, _ = sample(torch.bfloat16)
    wanted, _ = plain(hidden.double() @ head.double().T, tokens, 1.0)
    found, _ = head_log_probs(hidden, head, tokens)
    assert found.dtype == torch.float32
    assert torch.allclose(found.double(), wanted, atol=1e-5)
    rounded, _ = plain((hidden @ head.T).float(), tokens, 1.0)
    assert (rounded.double() - wanted).abs().max() > 10 * (found.double() - wanted).abs().max()


def test_the_callers_logits_are_left_alone_and_banned_tokens_add_no_entropy() -> None:
    logits = torch.tensor([[0.0, 0.0, float("-inf")]])
    before = logits.clone()
    found, entropy = selected_log_probs(logits, torch.tensor([1])), entropies(logits)
    assert torch.equal(logits, before)
    assert found.item() == pytest.approx(-0.693147, abs=1e-6)
    assert entropy.item() == pytest.approx(0.693147, abs=1e-6)


def test_shapes_that_do_not_fit() -> None:
    hidden, head, tokens, _ = sample(torch.float32)
    with pytest.raises(ValueError, match="do not fit"):
        selected_log_probs(hidden, tokens[:-1])
    with pytest.raises(ValueError, match="does not fit states"):
        head_log_probs(hidden, head[:, :-1], tokens)
    with pytest.raises(ValueError, match="temperature of 0"):
        selected_log_probs(hidden, tokens, temperature=0)
