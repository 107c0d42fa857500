"""A training step, recorded on a GPU or computed on a CPU, is that of plain AdamW."""

import pytest

pytest.importorskip("torch", reason="the extra 'neural' is not installed")

import torch
from training.graphed import BETAS, TrainingStep
from training.low_rank import LowRank, adapt, cosine_pace, learning, linear_pace, low_rank_layers

SHARES = [0.5, 1.0, 0.25, 0.0]


def make_model():
    torch.manual_seed(3)
    model = torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.Tanh(), torch.nn.Linear(4, 1))
    adapt(model, "", 2, 4, 0.0)
    for _, layer in low_rank_layers(model):
        torch.nn.init.normal_(layer.b)
    return model


def batches():
    chance = torch.Generator().manual_seed(5)
    return [(torch.randn(8, 4, generator=chance), torch.randint(2, (8, 1), generator=chance)) for _ in SHARES]


def loss_of(model):
    return lambda inputs, wanted: torch.nn.functional.mse_loss(model(inputs), wanted.float())


@pytest.mark.parametrize("device", ["cpu", "cuda"])
def test_a_training_step_is_that_of_plain_adamw(device):
    if device == "cuda" and not torch.cuda.is_available():
        pytest.skip("there is no GPU")
    plain = make_model()
    optimizer = torch.optim.AdamW(learning(plain), lr=0.1, weight_decay=0.01, betas=BETAS)
    expected = []
    for share, batch in zip(SHARES, batches(), strict=True):
        optimizer.param_groups[0]["lr"] = 0.1 * share
        optimizer.zero_grad()
        loss = loss_of(plain)(*batch)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(learning(plain), 0.5)
        optimizer.step()
        expected.append(loss.item())
    model = make_model().to(device)
    shapes = [((8, 4), torch.float), ((8, 1), torch.long)]
    step = TrainingStep(model, loss_of(model), shapes, 0.1, 0.01, 0.5, device)
    found = [step(share, *batch).item() for share, batch in zip(SHARES, batches(), strict=True)]
    assert found == pytest.approx(expected, rel=1e-4)
    for one, other in zip(learning(model), learning(plain), strict=True):
        assert torch.allclose(one.cpu(), other, atol=1e-4)


def test_a_layer_that_has_learned_nothing_is_the_layer_itself():
    base = torch.nn.Linear(6, 3)
    layer, inputs = LowRank(base, 2, 4, 0.5), torch.randn(5, 6)
    assert torch.equal(layer(inputs), base(inputs))
    assert layer.half().to(torch.bfloat16)(inputs.to(torch.bfloat16)).dtype == torch.bfloat16


def test_only_the_linear_layers_inside_the_named_part_learn():
    model = torch.nn.ModuleDict({"body": torch.nn.Sequential(torch.nn.Linear(2, 2)), "top": torch.nn.Linear(2, 2)})
    adapt(model, "body", 1, 2, 0.0)
    assert [name for name, _ in low_rank_layers(model)] == ["body.0"]
    assert [name for name, one in model.named_parameters() if one.requires_grad] == ["body.0.a", "body.0.b"]


@pytest.mark.parametrize("pace", [linear_pace, cosine_pace])
def test_the_learning_rate_rises_over_the_warmup_and_falls_to_zero(pace):
    found = [pace(step, 100, 0.1) for step in range(101)]
    assert found[0] == pytest.approx(0.1, abs=0.01) and max(found) == found[9] and found[9] > 0.9
    assert found[9:] == sorted(found[9:], reverse=True) and found[100] == pytest.approx(0.0, abs=1e-9)


@pytest.mark.parametrize("pace", [linear_pace, cosine_pace])
def test_without_a_warmup_the_learning_rate_begins_at_its_full_value(pace):
    found = [pace(step, 100, 0.0) for step in range(101)]
    assert found[0] == 1.0 and found == sorted(found, reverse=True)
