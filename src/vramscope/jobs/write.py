"""From a workload to a program."""

from __future__ import annotations

from vramscope.errors import RecipeError
from vramscope.jobs.facts import TRAINING, Facts
from vramscope.jobs.recipe import DEFAULTS, Recipe
from vramscope.jobs.script import Script
from vramscope.jobs.source import Source
from vramscope.jobs.tasks import task_module, task_writer
from vramscope.jobs.technique import AUTO
from vramscope.jobs.work import Work


def settled(source: Source, recipe: Recipe, facts: Facts) -> Work:
    """The workload with every knob in a position that suits the model; RecipeError for a task that does not."""
    task = facts.tasks[0] if recipe["task"] == AUTO else recipe["task"]
    if task not in facts.tasks:
        known = ", ".join(facts.tasks)
        raise RecipeError(
            f"task={task}: {source.text} ({facts.kind}) cannot be used for it; it can for {known}"
        )
    usual = {"task": task, **task_module(task).usual(facts)}
    return Work(source, recipe.having({name: usual[name] for name in recipe.open() if name in usual}), facts)


def objection(work: Work) -> str | None:
    """Why the techniques do not go with the model or with each other, as a sentence; None: they do."""
    trains = work.task in TRAINING
    for knob, technique, argument in work.recipe.techniques():
        turned = work.recipe[knob.name] != DEFAULTS[knob.name]
        if turned and not trains and (knob.training_only or technique.training_only):
            return f"{knob.name}={work.recipe[knob.name]}: {work.task} trains nothing"
        if sentence := technique.refuses(argument, work):
            return f"{knob.name}={work.recipe[knob.name]}: {sentence}"
    return None


def write_program(work: Work) -> Script:
    """The program of a workload.  RecipeError if `objection` has one."""
    if sentence := objection(work):
        raise RecipeError(sentence)
    script = Script(title_of(work))
    task_writer(work.task)(script, work)
    if work.trains:
        script.model.append("model.train()")
        script.optimizer.append("trained = [each for each in model.parameters() if each.requires_grad]")
    for knob, technique, argument in work.recipe.techniques():
        if work.trains or not knob.training_only:
            technique.write(argument, script, work)
    return script


def title_of(work: Work) -> str:
    """The program in a line: the source, the task and what is turned."""
    shown = [
        f"{name} {value}" for name, value in work.recipe.turned().items() if name != "task" and value != AUTO
    ]
    return f"{work.source.text} · {', '.join((work.task, *shown))}. Written by `vramscope plan`."
