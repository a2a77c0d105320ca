"""The conditional Gaussian in K dimensions against the dense formula; the memory and the time it takes."""

import pytest
import torch

from distillation.test_partition import copied
from headviz.errors import ModelError, OptionError
from headviz.extras.distillation.layer_removal import KEPT, ZEROED, Entries, Partition, remove
from headviz.extras.distillation.plan import PosteriorOptions
from headviz.extras.distillation.posterior import FileIterates, MemoryIterates, Posterior, Prior, save_iterate
from headviz.extras.distillation.removal import Removal
from support.tiny import tiny_classifier

HALF, DIAGONAL = PosteriorOptions(shrinkage=0.5), PosteriorOptions("diagonal")
SHAPES = {"a": (3, 4), "b": (5,), "c": (2, 6)}


def drawn(count=6, seed=0, spread=0.3):
    """A mean and iterates whose directions are correlated over all tensors."""
    g = torch.Generator().manual_seed(seed)
    mean = {n: torch.randn(s, generator=g) for n, s in SHAPES.items()}
    common = [{n: torch.randn(s, generator=g) for n, s in SHAPES.items()} for _ in range(3)]
    its = []
    for _ in range(count):
        weights = torch.randn(3, generator=g)
        its.append(
            {
                n: mean[n]
                + spread
                * (sum(w * c[n] for w, c in zip(weights, common, strict=True)) + 0.4 * torch.randn(s, generator=g))
                for n, s in SHAPES.items()
            }
        )
    return mean, its


def partition():
    """``a`` loses a row to v1 and a row to v2, ``b`` stays, of ``c`` columns go to v1 and v2."""
    idx = torch.tensor
    shapes = {n: torch.Size(s) for n, s in SHAPES.items()}
    kept = {"A": Entries("a", 0, idx([0])), "B": Entries("b"), "C": Entries("c", 1, idx([0, 3, 4]))}
    return Partition(shapes, kept, (Entries("a", 0, idx([2])), Entries("c", 1, idx([1]))))


def dense(mean, its, options, part):
    """The formula as it is written, with P x P matrices in float64."""
    flat = torch.stack([torch.cat([w[n].flatten() for n in SHAPES]) for w in its]).double()
    dev = (flat - flat.mean(0)) / (len(its) - 1) ** 0.5
    s = dev.T @ dev
    if options.covariance == "diagonal":
        sigma = s.diag().diag()
    else:
        values, vectors = torch.linalg.eigh(s)
        rank = options.rank or len(its) - 1
        s_r = (vectors[:, -rank:] * values[-rank:]) @ vectors[:, -rank:].T
        a = options.shrinkage
        sigma = (s.diag() - (1 - a) * s_r.diag()).clamp(min=0).diag() + (1 - a) * s_r
    sigma = sigma * options.scale
    mu = torch.cat([mean[n].flatten() for n in SHAPES]).double()
    roles = torch.cat([part.roles(n).flatten() for n in SHAPES])
    least = options.floor * float(s.trace()) / len(mu) * options.scale
    z, two = (roles != ZEROED).nonzero()[:, 0], (roles == ZEROED).nonzero()[:, 0]
    own = (
        sigma.diag() - ((1 - options.shrinkage) * s_r * options.scale).diag()
        if options.covariance != "diagonal"
        else sigma.diag()
    )
    jitter = (least - own[two]).clamp(min=0)
    s22 = sigma[two][:, two] + jitter.diag()
    gain = sigma[z][:, two] @ torch.linalg.inv(s22)
    m = mu[z] - gain @ mu[two]
    r = sigma[z][:, z] - gain @ sigma[two][:, z]
    keep = (roles[z] == KEPT).nonzero()[:, 0]
    return m[keep], r[keep][:, keep]


def ours(prior):
    """Mean and covariance of the student's weights, ordered as the teacher's."""
    blocks = [prior.block(n) for n in prior.partition.kept]
    mean = torch.cat([b.mean.flatten() for b in blocks]).double()
    diagonal = torch.cat([b.diagonal.flatten() for b in blocks]).double()
    factor = torch.cat([b.factor.flatten(1) for b in blocks], dim=1).double()
    return mean, diagonal.diag() + factor.T @ factor


@pytest.mark.parametrize(
    "options",
    [
        HALF,
        PosteriorOptions(rank=2, shrinkage=0.5),
        PosteriorOptions(rank=1, shrinkage=0.1),
        PosteriorOptions(shrinkage=0.9, scale=7.0),
        DIAGONAL,
    ],
    ids=str,
)
def test_woodbury_is_the_dense_formula(options):
    mean, its = drawn()
    prior = Prior(Posterior(mean, MemoryIterates(its), options), partition())
    m, r = ours(prior)
    want_m, want_r = dense(mean, its, options, partition())
    torch.testing.assert_close(m, want_m, atol=2e-5, rtol=1e-4)
    torch.testing.assert_close(r, want_r, atol=2e-5 * options.scale, rtol=1e-4)
    assert not prior.notes


@pytest.mark.parametrize("zeroed", ["ab", "a", "b"])
def test_whole_tensors_may_be_zeroed_and_none_left_over(zeroed):
    """As Theorem 2 zeroes all of an attention, and Theorem 4 a part of it."""
    mean, its = drawn()
    shapes = {n: torch.Size(s) for n, s in SHAPES.items()}
    part = Partition(shapes, {"C": Entries("c")}, tuple(map(Entries, zeroed)))
    assert (part.sizes["useless"] == 0) == (zeroed == "ab")
    m, r = ours(Prior(Posterior(mean, MemoryIterates(its), HALF), part))
    want_m, want_r = dense(mean, its, HALF, part)
    torch.testing.assert_close(m, want_m, atol=2e-5, rtol=1e-4)
    torch.testing.assert_close(r, want_r, atol=2e-5, rtol=1e-4)


def test_a_diagonal_covariance_copies():
    mean, its = drawn()
    prior = Prior(Posterior(mean, MemoryIterates(its), DIAGONAL), partition())
    kept = copied(partition(), mean)
    for name, m in prior.mean().items():
        assert torch.equal(m, kept[name])
    assert prior.moved == 0.0
    # full shrinkage is the same covariance by the other way
    same = Prior(Posterior(mean, MemoryIterates(its), PosteriorOptions(shrinkage=1.0)), partition())
    for name, m in same.mean().items():
        assert torch.equal(m, kept[name])


def test_a_singular_covariance_is_regularised_and_said_so():
    mean, its = drawn()
    for w in its:  # two of v2's six weights never move
        w["c"][:, 1] = mean["c"][:, 1]
    prior = Prior(Posterior(mean, MemoryIterates(its), HALF), partition())
    assert prior.raised == 2
    assert "singular: 2 of 6" in prior.notes[0]
    m, r = ours(prior)
    want_m, want_r = dense(mean, its, HALF, partition())
    torch.testing.assert_close(m, want_m, atol=2e-5, rtol=1e-4)
    torch.testing.assert_close(r.diag(), want_r.diag().clamp(min=prior.least), atol=2e-5, rtol=1e-4)
    # without a diagonal part, all of it is
    bare = Prior(Posterior(mean, MemoryIterates(its), PosteriorOptions(shrinkage=0.0)), partition())
    assert bare.raised == 6
    assert all(torch.isfinite(b).all() for b in bare.mean().values())


@pytest.mark.parametrize(
    ("count", "options", "words"),
    [
        (4, {"rank": 4}, "needs at least 5 iterates, and there are 4"),
        (1, {}, "at least 2 iterates"),
        (4, {"rank": 0}, "at least 1"),
        (4, {"covariance": "full"}, "Choose one of: low-rank, diagonal"),
        (4, {"covariance": "diagonal", "rank": 2}, "no rank"),
        (4, {"shrinkage": 1.5}, "from 0 to 1"),
        (4, {"scale": 0.0}, "above 0"),
    ],
)
def test_bad_posteriors_get_one_clear_line(count, options, words):
    mean, its = drawn(count)
    with pytest.raises(OptionError, match=words):
        Posterior(mean, MemoryIterates(its), PosteriorOptions(**options))


def test_equal_iterates_are_refused():
    mean, its = drawn(5)
    with pytest.raises(OptionError, match="all the same"):
        Posterior(mean, MemoryIterates([its[0]] * 5))
    with pytest.raises(OptionError, match="span only 1"):
        Posterior(mean, MemoryIterates([its[0], its[1], its[0], its[1]]), PosteriorOptions(rank=2, shrinkage=0.5))
    other = [{**w, "a": w["a"][:2]} for w in its]
    with pytest.raises(OptionError, match="another model"):
        Posterior(mean, MemoryIterates(other), HALF)


@pytest.mark.slow
def test_iterates_in_files_give_the_same_prior(tmp_path):
    clf = tiny_classifier("bert")
    part = remove(clf, Removal.parse("heads:1.2+layers:2")).partition
    mean = dict(clf.model.named_parameters())
    models = [tiny_classifier("bert", seed=s).model for s in range(1, 5)]
    paths = [save_iterate(m, tmp_path / f"{i}.safetensors") for i, m in enumerate(models)]
    filed = Prior(Posterior(mean, FileIterates(paths)), part).mean()
    kept = Prior(Posterior(mean, MemoryIterates([dict(m.named_parameters()) for m in models])), part).mean()
    assert (
        filed.keys()
        == kept.keys()
        == dict(remove(clf, Removal.parse("heads:1.2+layers:2")).student.model.named_parameters()).keys()
    )
    assert all(torch.equal(filed[n], kept[n]) for n in kept)
    paths[1].write_bytes(paths[1].read_bytes()[:100])
    with pytest.raises(ModelError, match=r"1\.safetensors' cannot be read"):
        FileIterates(paths)
