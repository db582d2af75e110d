"""Recipes: every knob has a position, and what cannot be is said."""

from __future__ import annotations

import pytest

from vramscope.errors import RecipeError
from vramscope.jobs.knobs import KNOBS, knob_named
from vramscope.jobs.recipe import DEFAULTS, Recipe, recipe_from, recipe_of
from vramscope.jobs.technique import AUTO, Knob, Technique, nearest, whole_number


def test_an_untouched_recipe_stands_on_the_defaults():
    assert recipe_of({}) == DEFAULTS
    assert DEFAULTS.turned() == {}
    assert [DEFAULTS[knob.name] for knob in KNOBS] == [knob.default for knob in KNOBS]


def test_positions_come_in_their_usual_form_and_other_knobs_stay():
    recipe = recipe_of({"tune": " lora ", "batch": "007", "new_tokens": "9", "clip": "norm:2"})

    assert recipe.turned() == {"batch": "7", "new-tokens": "9", "tune": "lora:8", "clip": "norm:2.0"}
    assert recipe.number("batch") == 7
    assert recipe.having({"tune": "full"}).turned(recipe) == {"tune": "full"}


def test_a_recipe_survives_as_plain_values():
    recipe = recipe_of({"tune": "qlora:4", "accumulate": "3"})

    assert recipe_from(recipe.turned()) == recipe
    with pytest.raises(RecipeError, match="another version of vramscope: it turns wheels"):
        recipe_from({"wheels": "4"})


def test_techniques_come_in_the_order_of_writing_with_their_arguments():
    turned = {
        (knob.name, technique.name): argument
        for knob, technique, argument in recipe_of(
            {"tune": "lora:4", "accumulate": "3", "checkpoint": "every:3"}
        ).techniques()
    }

    assert turned["tune", "lora"] == "4"
    assert turned["accumulate", "n"] == "3"
    assert turned["checkpoint", "every"] == "3"
    assert turned["optimizer", "adamw"] == ""
    assert "batch" not in {knob for knob, _ in turned}
    assert list(turned) == sorted(turned, key=lambda pair: [knob.name for knob in KNOBS].index(pair[0]))


def test_knobs_that_nobody_turned_are_open():
    assert set(DEFAULTS.open()) >= {"task", "batch", "precision"}
    assert "batch" not in recipe_of({"batch": "4"}).open()
    assert recipe_of({"batch": AUTO}) == DEFAULTS


@pytest.mark.parametrize(
    ("positions", "words"),
    [
        ({"tun": "full"}, "did you mean tune"),
        ({"zzz": "full"}, "there is task, batch"),
        ({"tune": "most"}, "there is full, freeze, lora"),
        ({"batch": "0"}, "batch must be at least 1"),
        ({"batch": "two"}, "batch must be a whole number, not 'two'"),
        ({"image": "-3"}, "image must be at least 1"),
        ({"seq": str(1 << 50)}, "at most"),
        ({"precision": "fp64"}, "precision=fp64"),
        ({"optimizer": AUTO}, "optimizer=auto"),
    ],
)
def test_knobs_and_positions_that_there_are_not_are_named(positions: dict[str, str], words: str):
    with pytest.raises(RecipeError) as caught:
        recipe_of(positions)

    assert words in str(caught.value)


def test_knobs_are_found_with_underscores_and_spaces():
    assert knob_named(" optimizer_in_backward ").name == "optimizer-in-backward"


def test_a_number_that_is_written_has_one_technique():
    written = Technique("n", "")
    knob = Knob("parts", "", "1", (written,), number=whole_number("parts", most=8))
    silent = Knob("size", "", AUTO, number=whole_number("size"))

    assert knob.technique(knob.position("4")) == (written, "4")
    assert silent.technique("4")[0] is None
    assert Knob("open", "", AUTO, (written,), number=whole_number("open")).technique(AUTO)[0] is None
    with pytest.raises(RecipeError, match="at most 8"):
        knob.position("9")


def test_near_words_are_offered_before_all_words():
    assert nearest("lore", ("lora", "dora", "full")) == "there is no 'lore'; did you mean lora, dora?"
    assert nearest("x", ("a", "b")) == "there is no 'x'; there is a, b"


def test_recipes_are_equal_by_their_positions():
    assert {recipe_of({"batch": "4"}), Recipe(recipe_of({"batch": "04"}).positions)} == {
        recipe_of({"batch": "4"})
    }
