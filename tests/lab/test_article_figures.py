"""lab/article.py: the seed article's staged readings."""

from __future__ import annotations

from vramscope.lab.article import article
from vramscope.lab.stages.asking import MODELS
from vramscope.lab.stages.value import STAGES


def test_there_are_six_tables_of_twelve_readings():
    tables = article().tables

    assert [(each.model, each.batch, each.image) for each in tables] == [
        (model, batch, image) for batch, image in ((90, 224), (1, 64)) for model in MODELS
    ]
    assert all(tuple(each.reserved_bytes) == STAGES for each in tables)
    assert sum(len(each.reserved_bytes) for each in tables) == 72


def test_every_figure_is_of_whole_segments():
    figures = [size for each in article().tables for size in each.reserved_bytes.values()]

    assert all(size % (2 << 20) == 0 for size in figures)
    assert all(each.reserved_bytes["import"] == 0 for each in article().tables)


def test_a_table_is_found_by_model_and_size_and_others_are_not_there():
    found = article().table("resnet50", 1, 64)

    assert found is not None
    assert found.reserved_bytes["step"] == 492 << 20
    assert article().table("resnet50", 90, 64) is None
    assert article().table("resnet34", 1, 64) is None


def test_the_source_is_said_and_what_is_not_known_of_it():
    told = article()

    assert "blog article" in told.source
    assert "not stated" in told.torch
    assert "not stated" in told.card
