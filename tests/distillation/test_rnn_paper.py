"""The recurrent translator as in the paper: output of the state alone, uniform weights, dropout, own words, beams."""

import itertools
import math

import pytest
import torch

from distillation.test_rnn import SOURCES, batch, translator
from headviz.extras.distillation.layer_removal import USELESS, zeroed_model
from headviz.extras.distillation.problem import ZEROED, without_attention
from headviz.extras.translation.recurrent import BEGIN, END, Rnn, RnnConfig, RnnTranslator, beam

SIZES = {"embedding": 3, "hidden": 4, "units": 3}
KINDS = [(a, r) for a in (True, False) for r in ("state-and-context", "state")]


# what the output layer reads -------------------------------------------------------------------


def test_the_output_of_the_state_alone_does_not_see_the_context() -> None:
    """Of the logits' formula only W y + b is left, whatever the context is."""
    made = translator(reads="state").model
    assert made.output.weight.shape[1] == made.config.hidden
    out, one, other = torch.randn(2, 8), torch.randn(2, 8), torch.randn(2, 8)
    expected = out @ made.output.weight.T + made.output.bias
    assert torch.equal(made.read(out, one), made.read(out, other))
    torch.testing.assert_close(made.read(out, one), expected)
    both = translator().model
    assert not torch.allclose(both.read(out, one), both.read(out, other))


@pytest.mark.parametrize("cell", ["lstm", "published"])
@pytest.mark.parametrize("reads", ["state-and-context", "state"])
def test_the_attention_is_removed_exactly_either_way(reads: str, cell: str) -> None:
    teacher = translator(reads=reads, cell=cell)
    student, partition = without_attention(teacher.model)
    assert student.config.reads == reads
    given = batch(teacher)
    with torch.no_grad():
        torch.testing.assert_close(student(*given), zeroed_model(teacher.model, partition)(*given), atol=1e-5, rtol=0)


@pytest.mark.parametrize("by", [*ZEROED])
def test_without_its_energies_nothing_of_the_attention_has_influence(by: str) -> None:
    """Whatever is zeroed, the rest of the attention may be anything, and the student is the same."""
    teacher = translator()
    student, partition = without_attention(teacher.model, by)
    given = batch(teacher)
    zeroed = zeroed_model(teacher.model, partition)
    with torch.no_grad():
        before = zeroed(*given)
        torch.testing.assert_close(student(*given), before, atol=1e-5, rtol=0)
        for name, p in zeroed.named_parameters():
            p[partition.roles(name) == USELESS] += 0.7
        torch.testing.assert_close(zeroed(*given), before, atol=1e-5, rtol=0)
        assert not torch.allclose(teacher.model(*given), before, atol=1e-2)
    assert {piece.name for piece in partition.zeroed} == {f"attention.{name}" for name in ZEROED[by]}
    assert (partition.sizes["useless"] == 0) == (by == "2")


# the paper's cell ------------------------------------------------------------------------------


def test_the_published_cell_follows_its_equations() -> None:
    """A plain recurrent encoder, gates of state and context alone, and an attention asked by the cell's state."""
    made = translator(cell="published", reads="state")
    model, (source, mask, given) = made.model, batch(made)
    with torch.no_grad():
        logits = model(source, mask, given)
        for i, words in enumerate(source):
            e, states, h = model.encoder, [], torch.zeros(8)
            for word in words[mask[i]]:  # 2.14
                h = torch.tanh(
                    e.weight_input @ model.source.weight[word] + e.bias_input + e.weight_hidden @ h + e.bias_hidden
                )
                states.append(h)
            seen, y, s = torch.stack(states), torch.tanh(model.bridge(h)), torch.zeros(8)
            d, a = model.decoder, model.attention
            for t in range(given.shape[1]):
                energies = torch.tanh(s @ a.query.weight.T + seen @ a.key.weight.T + a.key.bias) @ a.energy.weight[0]
                context = energies.softmax(0) @ seen  # 2.21
                gates = d.weight_input @ context + d.bias_input + d.weight_hidden @ y + d.bias_hidden
                read, forget, new, out = gates.split(8)  # 2.15 to 2.18
                s = forget.sigmoid() * s + read.sigmoid() * new.tanh()
                y = out.sigmoid() * s.tanh()
                torch.testing.assert_close(logits[i, t], model.output(y), atol=1e-5, rtol=0)
    assert not [name for name, _ in model.named_parameters() if name.startswith("target")]


def test_a_published_cell_does_not_read_what_it_has_written(tmp_path) -> None:
    made = translator(cell="published")
    source, mask, given = batch(made)
    with torch.no_grad():
        assert torch.equal(made.model(source, mask, given), made.model(source, mask, given.flip(1)))
        torch.testing.assert_close(made.model(source, mask, given), made.model(source, mask, given, forcing=0.0))
    assert made.translate(SOURCES, beams=4) == made.translate(SOURCES)
    again = RnnTranslator.load(made.save(tmp_path / "model"))
    assert again.translate(SOURCES) == made.translate(SOURCES)
    assert again.model.config.cell == "published"
    assert "cell" not in translator().model.config.record  # earlier models keep their digest


# how weights are drawn -------------------------------------------------------------------------


def test_uniform_weights_are_within_their_bounds_and_fill_them() -> None:
    config = {"embedding": 16, "hidden": 25, "units": 9}
    uniform = Rnn(RnnConfig(300, 300, **config, initialisation="uniform"), seed=1)
    for weights, size in ((uniform.source.weight, 16), (uniform.output.weight, 50), (uniform.output.bias, 50)):
        bound = size**-0.5
        assert 0.9 * bound < float(weights.detach().abs().max()) <= bound
        assert float(weights.detach().std()) == pytest.approx(bound / 3**0.5, rel=0.2)
    normal = Rnn(RnnConfig(300, 300, **config), seed=1)
    assert float(normal.source.weight.detach().abs().max()) > 16**-0.5
    assert not normal.output.bias.detach().any()


# words of its own, dropout ---------------------------------------------------------------------


@pytest.mark.parametrize(("attention", "reads"), KINDS)
def test_with_no_given_words_it_learns_from_its_own(attention: bool, reads: str) -> None:
    made = translator(attention=attention, reads=reads)
    source, mask, given = batch(made)
    with torch.no_grad():
        free = made.model(source, mask, given, forcing=0.0)
        own = torch.cat([given[:, :1], free.argmax(-1)[:, :-1]], 1)
        torch.testing.assert_close(made.model(source, mask, own), free, atol=1e-5, rtol=0)
        greedy = made.model.greedy(source, mask, given.shape[1])
        assert torch.equal(free.argmax(-1)[:, : greedy.shape[1]], greedy)
        wanted = torch.arange(given.numel()).view_as(given) % 3 == 1
        assert torch.equal(made.model(source, mask, given, wanted, 0.0), free[wanted])
        assert torch.equal(made.model(source, mask, given, forcing=1.0), made.model(source, mask, given))


def test_a_share_of_given_words_is_drawn_from_the_seed() -> None:
    made = translator()
    source, mask, given = batch(made)

    def found(seed: int) -> torch.Tensor:
        torch.manual_seed(seed)
        with torch.no_grad():
            return made.model(source, mask, given, forcing=0.5)

    assert torch.equal(found(1), found(1))
    assert not torch.allclose(found(1), found(2))


def test_dropout_acts_while_it_learns_and_not_afterwards() -> None:
    made = translator(dropout=0.5)
    source, mask, given = batch(made)
    for forcing in (1.0, 0.5):
        made.model.train()
        torch.manual_seed(3)
        learning = made.model(source, mask, given, forcing=forcing)
        made.model.eval()
        torch.manual_seed(3)
        assert not torch.allclose(made.model(source, mask, given, forcing=forcing), learning)
    plain = translator()
    assert torch.equal(made.model(source, mask, given), plain.model(source, mask, given))


# beam search -----------------------------------------------------------------------------------


def tiny(seed: int, attention: bool = True, reads: str = "state-and-context") -> Rnn:
    made = Rnn(RnnConfig(6, 6, **SIZES, attention=attention, reads=reads), seed)
    for p in made.parameters():
        p.data *= 3
    return made.eval()


def likelihood(model: Rnn, source: torch.Tensor, mask: torch.Tensor, words: tuple[int, ...]) -> float:
    """The log-probability of one translation, by the forward pass."""
    given = torch.tensor([[BEGIN, *words[:-1]]])
    with torch.no_grad():
        found = model(source, mask, given)[0].log_softmax(-1)
    return sum(float(found[t, w]) for t, w in enumerate(words))


def everything(longest: int) -> list[tuple[int, ...]]:
    """All translations: those that end, and those that are cut."""
    others = [w for w in range(6) if w != END]
    ended = [(*words, END) for n in range(longest) for words in itertools.product(others, repeat=n)]
    return ended + list(itertools.product(others, repeat=longest))


@pytest.mark.parametrize(("attention", "reads"), KINDS)
def test_a_beam_wide_enough_finds_the_best_of_all(attention: bool, reads: str) -> None:
    model, longest = tiny(1, attention, reads), 3
    source, mask = torch.tensor([[4, 5, END]]), torch.ones(1, 3, dtype=torch.bool)
    values = {w: likelihood(model, source, mask, w) / len(w) for w in everything(longest)}
    best = max(values, key=lambda w: values[w])
    found = beam(model, source, mask, longest, width=6**longest)[0].tolist()
    assert tuple(found[: len(best)]) == best
    assert all(w == END for w in found[len(best) :])


@pytest.mark.slow
def test_a_narrow_beam_keeps_the_likeliest_beginnings() -> None:
    """Against the same search written with lists, sentence by sentence."""
    for seed in range(4):
        model, longest, width = tiny(seed), 5, 2
        source, mask = torch.tensor([[4, 5, 4, END]]), torch.ones(1, 4, dtype=torch.bool)
        kept: list[tuple[int, ...]] = [()]
        for _ in range(longest):
            following = [h for h in kept if h and h[-1] == END]
            following += [(*h, w) for h in kept if not (h and h[-1] == END) for w in range(6)]
            following.sort(key=lambda h: -likelihood(model, source, mask, h))
            kept = following[:width]
        best = max(kept, key=lambda h: likelihood(model, source, mask, h) / len(h))
        found = beam(model, source, mask, longest, width)[0].tolist()
        assert tuple(found[: len(best)]) == best


@pytest.mark.slow
@pytest.mark.parametrize(("attention", "reads"), KINDS)
def test_one_beam_is_the_greedy_translation(attention: bool, reads: str) -> None:
    for seed in range(2):
        made = translator(seed, attention=attention, reads=reads)
        source, mask, _ = batch(made)
        greedy, one = (made.model.greedy(source, mask, 12), beam(made.model, source, mask, 12, width=1))
        assert greedy.shape == one.shape
        for row, other in zip(greedy.tolist(), one.tolist(), strict=True):
            until = row.index(END) + 1 if END in row else len(row)
            assert row[:until] == other[:until]
        assert made.translate(SOURCES, beams=1) == made.translate(SOURCES)


@pytest.mark.slow
def test_a_search_does_not_depend_on_company_and_finds_likelier_translations() -> None:
    better = 0.0
    for seed in range(4):
        made = translator(seed, spread=2.0)
        together = made.translate(SOURCES, beams=4)
        assert together == [made.translate([s], beams=4)[0] for s in SOURCES]
        source, mask, _ = batch(made, SOURCES[:1])
        wide, greedy = (
            made.model.greedy(source, mask, 8) if n == 1 else beam(made.model, source, mask, 8, n) for n in (4, 1)
        )
        better += _per_word(made.model, source, mask, wide) - _per_word(made.model, source, mask, greedy)
    assert better > 0


def _per_word(model: Rnn, source: torch.Tensor, mask: torch.Tensor, words: torch.Tensor) -> float:
    row = words[0].tolist()
    row = row[: row.index(END) + 1] if END in row else row
    value = likelihood(model, source, mask, tuple(row)) / len(row)
    assert math.isfinite(value)
    return value
