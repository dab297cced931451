"""The checkpoint contract: what a folder must hold, and how it is refused."""

import json

import pytest

from components.checkpoint import (
    Component,
    read_component,
    replace_folder,
    require_matching_weights,
    write_component,
)
from records import UserError

LABELS = ["entailment", "neutral", "contradiction"]


@pytest.fixture
def folder(tmp_path):
    config = {"model_type": "bert", "id2label": dict(enumerate(LABELS))}
    (tmp_path / "config.json").write_text(json.dumps(config))
    (tmp_path / "model.safetensors").write_bytes(b"")
    write_component(tmp_path, component(), "card")
    return tmp_path


def component(**changes):
    fields = {
        "component": "relation",
        "architecture": "sequence_classifier",
        "labels": LABELS,
        "max_length": 128,
        "base": {"id": "tiny"},
    }
    return Component(**(fields | changes))


def rewrite(folder, **changes):
    path = folder / "component.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | changes))


def test_what_is_written_is_read(folder):
    assert read_component(folder, "relation") == component()


def test_an_adapter_needs_no_config_of_a_model(folder):
    (folder / "config.json").unlink()
    rewrite(folder, component="adversary", architecture="causal_lora", labels=[])
    assert read_component(folder, "adversary").labels == []


def test_a_relation_model_has_the_three_relations(folder):
    config = {"model_type": "bert", "id2label": {"0": "yes", "1": "no", "2": "maybe"}}
    (folder / "config.json").write_text(json.dumps(config))
    rewrite(folder, labels=["yes", "no", "maybe"])
    with pytest.raises(UserError, match="in some order"):
        read_component(folder)


def test_a_config_that_wants_code_of_its_own_is_refused(folder):
    code = {"model_type": "own", "auto_map": {"AutoConfig": "own.Own"}}
    (folder / "config.json").write_text(json.dumps(code))
    (folder / "own.py").write_text("raise SystemExit('it ran')")
    with pytest.raises(UserError, match=r"config\.json cannot be loaded"):
        read_component(folder)


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"max_lenght": 3}, "max_lenght"),
        ({"architecture": "causal_lora", "base": {}}, r"base\.id"),
    ],
)
def test_a_bad_field_is_named(folder, changes, field):
    rewrite(folder, **changes)
    with pytest.raises(UserError, match=field):
        read_component(folder)


def test_weights_must_fill_the_model(tmp_path):
    require_matching_weights(tmp_path, [], [])
    with pytest.raises(UserError, match="lack a, b, c and 1 more"):
        require_matching_weights(tmp_path, "dcba", "x")
    with pytest.raises(UserError, match="have unknown x; "):
        require_matching_weights(tmp_path, [], ["x"])


def test_a_checkpoint_between_two_renames_is_put_back(tmp_path):
    to, old = tmp_path / "unli", tmp_path / ".unli.old"
    old.mkdir()  # what a killed process left: the old one has gone, the new one is not there
    (old / "component.json").write_text("{}")
    with pytest.raises(RuntimeError, match="no"), replace_folder(to):
        raise RuntimeError("no")
    assert [path.name for path in to.iterdir()] == ["component.json"]
    with replace_folder(to) as folder:
        (folder / "README.md").write_text("new")
        (folder / "chat_templates").mkdir()
    assert {path.name for path in to.iterdir()} == {"README.md", "chat_templates"}
    assert (to / "chat_templates").stat().st_mode & 0o111  # may be entered
    assert not old.exists()
