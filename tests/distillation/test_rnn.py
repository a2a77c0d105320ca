"""The recurrent translator: without attention it is itself with v_a at zero; padding; saving."""

import dataclasses
import json

import numpy as np
import pytest
import torch

import headviz
from headviz import HeadMask, cli
from headviz.errors import ModelError, OptionError, TaskError
from headviz.extras.distillation.layer_removal import zeroed_model
from headviz.extras.distillation.problem import redrawn, without_attention
from headviz.extras.translation.recurrent import BEGIN, END, Rnn, RnnConfig, RnnTranslator, Vocabulary, padded, words_of
from headviz.extras.translation.sentence import bleu
from headviz.tasks import TASKS, Dataset, get_task

SOURCES = ["the dog sees a cat.", "a bird sings", "does the cat see the small bird?"]
TARGETS = ["kan mil tor.", "vi sola", "ma tor mil pe vi?"]


def translator(seed=0, spread=3.0, **more):
    made = RnnTranslator.new(SOURCES, TARGETS, seed, embedding=6, hidden=8, units=5, **more)
    for p in made.model.parameters():
        p.data *= spread  # small random weights attend almost evenly
    return made


def batch(made, texts=SOURCES):
    source, mask = padded([made.source.encode(t) for t in texts], torch.device("cpu"))
    given, _ = padded([[BEGIN, *made.target.encode(t)[:-1]] for t in TARGETS[: len(texts)]], torch.device("cpu"))
    return source, mask, given


def test_the_mean_of_encoder_states_is_attention_with_zero_energies():
    teacher = translator()
    student, partition = without_attention(teacher.model)
    given = batch(teacher)
    with torch.no_grad():
        full, zero = teacher.model(*given), zeroed_model(teacher.model, partition)(*given)
        ours = student(*given)
    torch.testing.assert_close(ours, zero, atol=1e-5, rtol=0)
    assert not torch.allclose(full, ours, atol=1e-2), "removing the attention must be visible"
    sizes = partition.sizes
    assert sizes["zeroed"] == 5
    assert sizes["useless"] == 8 * 5 + 8 * 5 + 5
    assert sizes["kept"] == sum(p.numel() for p in student.parameters())
    greedy = {"longest": 12}
    assert torch.equal(
        student.greedy(*given[:2], **greedy), zeroed_model(teacher.model, partition).greedy(*given[:2], **greedy)
    )


@pytest.mark.parametrize("attention", [True, False])
def test_padding_takes_no_part(attention):
    made = translator(attention=attention)
    source, mask, given = batch(made)
    with torch.no_grad():
        together = made.model(source, mask, given)
        for i, text in enumerate(SOURCES):
            one, own = padded([made.source.encode(text)], torch.device("cpu"))
            alone = made.model(one, own, given[i : i + 1])
            torch.testing.assert_close(together[i : i + 1], alone, atol=1e-5, rtol=0)
        wanted = torch.arange(given.numel()).view_as(given) % 3 == 1
        torch.testing.assert_close(made.model(source, mask, given, wanted), together[wanted], atol=1e-6, rtol=0)


def test_translations_do_not_depend_on_company():
    made = translator()
    together = made.translate(SOURCES)
    assert together == [made.translate([s])[0] for s in SOURCES] == made.translate(SOURCES, batch=1)
    assert made.translate([]) == []


@pytest.mark.parametrize("beams", [1, 2])
def test_a_translation_has_no_more_words_than_max_length(beams):
    short = dataclasses.replace(translator(), max_length=2)
    whole = translator().translate(SOURCES)
    said = short.translate(SOURCES, beams=beams)
    assert max(len(words_of(t)) for t in said) == 2
    assert beams > 1 or [words_of(t) for t in said] == [words_of(t)[:2] for t in whole]


def test_a_translator_is_saved_and_read_back(tmp_path):
    made = translator()
    made.save(tmp_path / "rnn")
    again = RnnTranslator.load(tmp_path / "rnn")
    assert again.digest == made.digest
    assert again.translate(SOURCES) == made.translate(SOURCES)
    (tmp_path / "rnn" / "rnn.safetensors").write_bytes(b"x" * 40)
    with pytest.raises(ModelError, match="cannot be read"):
        RnnTranslator.load(tmp_path / "rnn")


def test_it_is_loaded_and_evaluated_as_any_other_model(tmp_path, capsys):
    """headviz.load, headviz.evaluate, and the commands info and evaluate; on a sentence pair that it knows by heart."""
    made = translator(spread=1.0)
    made.save(tmp_path / "rnn")
    again = headviz.load(tmp_path / "rnn", device="cpu")
    assert isinstance(again, RnnTranslator)
    assert again.digest == made.digest
    said = made.translate(SOURCES)
    data = Dataset(TASKS["custom-translation"], "dev", tuple(SOURCES), tuple(TARGETS))
    own = Dataset(TASKS["custom-translation"], "dev", tuple(SOURCES), tuple(said))
    result = headviz.evaluate(again, data)
    assert list(result.translations) == said
    assert result.metrics["bleu"] == bleu(said, TARGETS).value
    assert result.signatures["bleu"].startswith("nrefs:1")
    assert headviz.evaluate(again, own).metrics["chrf"] == pytest.approx(100.0)

    folder = tmp_path / "data"
    folder.mkdir()
    (folder / "dev.tsv").write_text("\n".join("\t".join(p) for p in zip(SOURCES, TARGETS, strict=True)) + "\n")
    words = ["--model", str(tmp_path / "rnn"), "--task", "custom-translation", "--data", str(folder)]
    assert cli.main(["evaluate", *words, "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["metrics"]["bleu"] == result.metrics["bleu"]
    assert cli.main(["info", "--model", str(tmp_path / "rnn"), "--json"]) == 0
    about = json.loads(capsys.readouterr().out)
    assert (about["layers"], about["heads"], about["parameters"]) == (0, 0, made.parameters)


def test_what_needs_heads_says_that_it_has_none(tmp_path, capsys):
    model = str(translator().save(tmp_path / "rnn"))
    for split in ("train", "dev"):
        text = "\n".join("\t".join(p) for p in zip(SOURCES, TARGETS, strict=True))
        (tmp_path / f"{split}.tsv").write_text(text + "\n")
    task = ["--task", "custom-translation", "--data", str(tmp_path)]
    for words in (
        ["evaluate", "--off", "0.0", *task],
        ["score", "--score", "taylor", "--split", "dev", *task],
        ["stacks", *task],
        ["prune", "--off", "0.0", "--out", str(tmp_path / "out")],
    ):
        assert cli.main([*words, "--model", model]) == 2
        assert "has no attention heads" in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


def test_a_recurrent_translator_takes_no_head_no_other_precision_and_no_classes(tmp_path):
    translator().save(tmp_path / "rnn")
    for options, reason in (
        ({"masked_lm": True}, "no other head"),
        ({"fresh_labels": ("a", "b")}, "no other head"),
        ({"dtype": "bfloat16"}, "float32 only"),
    ):
        with pytest.raises(ModelError, match=reason):
            headviz.load(tmp_path / "rnn", **options)
    made = headviz.load(tmp_path / "rnn")
    with pytest.raises(TaskError, match="is no translation"):
        headviz.evaluate(made, Dataset(get_task("demo"), "dev", ("a",), ("b",), np.array([0])))
    data = Dataset(TASKS["custom-translation"], "dev", tuple(SOURCES), tuple(TARGETS))
    with pytest.raises(OptionError, match="beams is a whole number of at least 1"):
        headviz.evaluate(made, data, beams=0)
    with pytest.raises(ModelError, match="no attention heads"):
        headviz.evaluate(made, data, HeadMask.full(1, 1))
    with pytest.raises(ModelError, match="no attention heads"):
        headviz.score_heads(made, data, "taylor")


def test_networks_with_and_without_attention_are_drawn_alike():
    sizes = {"embedding": 6, "hidden": 8, "units": 5}
    one, other = (Rnn(RnnConfig(9, 11, **sizes, attention=a), seed=3) for a in (True, False))
    shared = dict(other.named_parameters())
    assert all(torch.equal(p, shared[n]) for n, p in one.named_parameters() if n in shared)
    again, changed = redrawn(one, 3), redrawn(one, 4)
    assert all(torch.equal(p, q) for p, q in zip(one.parameters(), again.parameters(), strict=True))
    assert not torch.equal(one.output.weight, changed.output.weight)


def test_words_and_sentences():
    words = Vocabulary.of(["a b.", "b c?", "b"])
    assert words.words[4] == "b"
    assert words.decode(words.encode("a b.")) == "a b."
    assert words.decode(words.encode("z")) == "<unk>"
    assert words.decode([words.numbers["a"], END, words.numbers["b"]]) == "a"


def test_bad_networks_get_one_clear_line():
    with pytest.raises(OptionError, match="hidden"):
        RnnConfig(5, 5, hidden=0)
    with pytest.raises(OptionError, match="Did you mean 'state'"):
        RnnConfig(5, 5, reads="stat")
    with pytest.raises(OptionError, match="initialisation"):
        RnnConfig(5, 5, initialisation="xavier")
    student, _ = without_attention(translator().model)
    with pytest.raises(ModelError, match="no attention"):
        without_attention(student)
