"""The page as a browser runs it: it agrees with the analyses to the byte, and answers pointer and keys."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from page_browser import Opened, keep_screenshot
from page_runs import HOSTILE, KINDS, hostile, imported, large, on_two_cards, trained_run, without_history

from vramscope.analysis.peak import peak
from vramscope.run.categories import CATEGORIES
from vramscope.run.curves import allocated_curve, category_curves, live_at, reserved_curve
from vramscope.run.run import Run
from vramscope.units import MIB, format_bytes, format_change

Open = Callable[..., Opened]
CURVES = """() => {
  const { trace } = vramscope.page;
  return { allocated: [...trace.allocated], reserved: [...trace.reserved], peak: trace.peak,
           categories: [...trace.curves].map(([number, curve]) => [number, [...curve]]) };
}"""
RANGE = "[vramscope.page.timeline.from, vramscope.page.timeline.to]"
MOMENT = "vramscope.page.moment"
LEAVES = """() => {
  const sum = (node) => node.kind === undefined ? [...node.below.values()].reduce((all, each) => all + sum(each), 0) : node.size;
  return sum(vramscope.page.icicle.tree);
}"""
LEDGER = "Object.fromEntries([...document.querySelectorAll('.ledger tr')].map((row) => [row.cells[0].textContent, Number(row.cells[1].dataset.bytes)]))"


def plot_box(opened: Opened) -> dict[str, float]:
    return opened.page.locator(".u-over").bounding_box()


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_of_run_opens_on_a_phone_without_a_complaint(opened: Open, kind: str):
    page = opened(KINDS[kind](), width=390, height=844)

    assert page.complaints == []
    assert [url.partition(":")[0] for url in page.requests] == ["file"]
    assert page("document.documentElement.scrollWidth") == 390


@pytest.mark.parametrize(
    "run", [trained_run(), imported(), large(4000)], ids=["trained", "imported", "large"]
)
def test_every_curve_agrees_to_the_byte(opened: Open, run: Run):
    trace = run.traces[0]

    found = opened(run)(CURVES)

    assert found["allocated"] == allocated_curve(trace).tolist()
    assert found["reserved"] == reserved_curve(trace).tolist()
    curves = category_curves(trace)
    assert found["categories"] == [[n, curves[n].tolist()] for n in np.unique(trace.blocks.category).tolist()]


@pytest.mark.parametrize(
    "run", [trained_run(), imported(), large(4000)], ids=["trained", "imported", "large"]
)
def test_the_peak_agrees_to_the_byte(opened: Open, run: Run):
    found = peak(run.traces[0], report=run.report)
    assert found is not None

    page = opened(run)

    assert page(MOMENT) == found.moment
    told = page(LEDGER)
    for share in found.categories:
        assert told[share.name.replace("_", " ")] == share.size_bytes
    assert told["allocated"] == found.allocated_bytes == page(LEAVES)
    assert told["free in segments"] == found.cached_bytes
    assert told["reserved"] == found.reserved_bytes
    assert told.get("process total") == found.process_total_bytes
    assert page("vramscope.page.rows.length") == found.blocks


def test_what_is_live_agrees_at_every_moment(opened: Open):
    trace = trained_run().traces[0]
    page = opened(trained_run())

    found = page(
        "() => Array.from({ length: vramscope.page.trace.moments }, (_, m) => vramscope.page.trace.liveAt(m))"
    )

    assert found == [live_at(trace, moment).tolist() for moment in range(trace.moments)]


def test_a_snapshot_without_a_history_shows_what_it_holds(opened: Open):
    run = without_history()
    page = opened(run)

    assert page(LEAVES) == int(run.traces[0].blocks.size_bytes.sum())
    assert "the state that the snapshot was taken in" in page.page.inner_text("#moment-text")


def test_the_plot_loses_no_peak(opened: Open):
    run = large(20_000)
    page = opened(run, width=600)

    drawn = page("vramscope.page.timeline.plot.data[1].reduce((a, b) => Math.max(a, b))")

    assert len(page("[...vramscope.page.timeline.plot.data[0]]")) < 5000
    assert drawn == int(allocated_curve(run.traces[0]).max())


def test_a_drag_zooms(opened: Open):
    page = opened(trained_run())
    before, box = page(RANGE), plot_box(page)

    page.page.mouse.move(box["x"] + 0.25 * box["width"], box["y"] + 50)
    page.page.mouse.down()
    page.page.mouse.move(box["x"] + 0.75 * box["width"], box["y"] + 90, steps=4)
    page.page.mouse.up()

    length = before[1]
    low, high = page.settled()(RANGE)
    assert abs(low - 0.25 * length) <= 1
    assert abs(high - 0.75 * length) <= 1
    assert page("[vramscope.page.timeline.plot.scales.x.min, vramscope.page.timeline.plot.scales.x.max]") == [
        low,
        high,
    ]
    page.page.click("#zoom-all")
    assert page(RANGE) == before


def test_a_drag_does_not_choose_another_moment(opened: Open):
    page = opened(trained_run())
    before, box = page(MOMENT), plot_box(page)

    page.page.mouse.move(box["x"] + 20, box["y"] + 50)
    page.page.mouse.down()
    page.page.mouse.move(box["x"] + 200, box["y"] + 50, steps=4)
    page.page.mouse.up()

    assert page.settled()(MOMENT) == before


def test_a_click_shows_what_is_live_then(opened: Open):
    run = trained_run()
    page = opened(run)
    before, words, box = page(LEAVES), page.page.inner_text("#moment-text"), plot_box(page)

    page.page.mouse.click(box["x"] + 0.4 * box["width"], box["y"] + 100)

    moment = page.settled()(MOMENT)
    assert abs(moment - 0.4 * run.traces[0].moments) < 2
    assert page(LEAVES) == int(allocated_curve(run.traces[0])[moment]) != before
    assert page(LEDGER)["allocated"] == page(LEAVES)
    assert page.page.inner_text("#moment-text") != words


def test_the_pointer_tells_what_is_live_there(opened: Open):
    page = opened(trained_run())
    box = plot_box(page)

    page.page.mouse.move(box["x"] + 0.4 * box["width"], box["y"] + 60)
    page.page.wait_for_selector("#hover:not([hidden])")
    moment = page("vramscope.page.timeline.momentAt(vramscope.page.timeline.plot.cursor.left)")

    told = page.page.inner_text("#hover")
    assert f"moment {moment} of" in told
    assert format_bytes(int(allocated_curve(trained_run().traces[0])[moment])) in told
    page.page.mouse.move(5, 5)
    page.page.wait_for_selector("#hover", state="hidden")


def test_keys_move_the_moment(opened: Open):
    trace = trained_run().traces[0]
    page = opened(trained_run())
    at = page(MOMENT)
    presses = {
        "ArrowLeft": at - 1,
        "ArrowRight": at,
        "End": trace.moments - 1,
        "PageUp": trace.spans[-1].first,
        "Home": 0,
        "ArrowDown": 0,
        "PageDown": trace.spans[1].first,
        "p": at,
    }
    page.page.focus("#chart")

    for key, moment in presses.items():
        page.page.keyboard.press(key)

        assert page.settled()(MOMENT) == moment, key
        assert page.page.get_attribute("#chart", "aria-valuenow") == str(moment)
        assert f"moment {moment} of" in str(page.page.get_attribute("#chart", "aria-valuetext"))
        size = format_bytes(int(allocated_curve(trace)[moment]))
        assert f"allocated {size}" in page.page.inner_text("[role=status]#moment-text")


def test_keys_zoom(opened: Open):
    page = opened(trained_run())
    before = page(RANGE)
    page.page.focus("#chart")

    page.page.keyboard.press("+")
    low, high = page(RANGE)
    assert high - low == round((before[1] - before[0]) / 2)
    assert low <= page(MOMENT) < high
    page.page.keyboard.press("0")
    assert page(RANGE) == before


def test_the_icicle_goes_into_a_part_and_back(opened: Open):
    page = opened(trained_run())

    page.page.click(".cell:has-text('Net')")
    page.page.locator(".cell", has_text="a").filter(has_text="a ·").first.click()
    inside = page("[...document.querySelectorAll('.cell')].slice(0, 3).map((cell) => cell.style.width)")
    assert inside == ["100%", "100%", "100%"]
    page.page.click(".cell >> nth=0")
    assert page("vramscope.page.icicle.path") == []


def test_the_icicle_answers_keys(opened: Open):
    page = opened(trained_run())
    name = "document.activeElement.getAttribute('aria-label')"
    page.page.focus(".cell[tabindex='0']")
    assert page(name).startswith("allocated: ")

    page.page.keyboard.press("ArrowDown")
    first = page(name)
    assert first.startswith("Net: ")
    page.page.keyboard.press("Enter")
    assert page("vramscope.page.icicle.path") == ["Net"]
    assert page(name) == first
    page.page.keyboard.press("ArrowDown")
    page.page.keyboard.press("ArrowRight")
    assert page(name).startswith("Net › ")
    assert page("document.querySelectorAll('.cell[tabindex=\"0\"]').length") == 1
    assert page.page.inner_text("#icicle-text").startswith(page(name))


@pytest.mark.parametrize(
    ("grouping", "first"), [("module", "Net"), ("line", "train.py:"), ("category", "activation")]
)
def test_the_icicle_groups(opened: Open, grouping: str, first: str):
    page = opened(trained_run())
    before = page(LEAVES)

    page.page.click(f"[data-grouping={grouping}]")

    assert any(each.startswith(first) for each in page("[...vramscope.page.icicle.tree.below.keys()]"))
    assert page(LEAVES) == before
    assert page.page.get_attribute(f"[data-grouping={grouping}]", "aria-checked") == "true"


def test_without_modules_the_icicle_is_by_line(opened: Open):
    page = opened(imported())

    assert page("vramscope.page.grouping.chosen") == "line"


def test_the_groupings_answer_keys(opened: Open):
    page = opened(trained_run())
    page.page.focus("[role=radio][tabindex='0']")

    page.page.keyboard.press("ArrowRight")

    assert page("[vramscope.page.grouping.chosen, document.activeElement.dataset.grouping]") == [
        "line",
        "line",
    ]


def test_the_largest_blocks_are_a_table(opened: Open):
    page = opened(trained_run())

    page.page.click("#largest > summary")
    page.page.wait_for_selector("#largest tbody tr")

    sizes = page(
        "[...document.querySelectorAll('#largest tbody th')].map((cell) => Number(cell.dataset.value))"
    )
    assert sizes == sorted(sizes, reverse=True)
    assert sizes[0] == max(
        trained_run().traces[0].blocks.size_bytes[live_at(trained_run().traces[0], page(MOMENT))]
    )
    jump = page.page.locator("#largest .jump").first
    born = int(jump.inner_text())
    jump.click()
    assert page(MOMENT) == born


def layer_cells(page: Opened, column: int) -> list[str]:
    return page(
        f"[...document.querySelectorAll('#layers tbody tr')].map((row) => row.cells[{column}].textContent)"
    )


def test_layers_sort(opened: Open):
    page = opened(large(4000))
    page.page.click("#layers button:has-text('Leaves only')")
    values = (
        "[...document.querySelectorAll('#layers tbody tr')].map((row) => Number(row.cells[2].dataset.value))"
    )
    head = page.page.locator("#layers th", has_text="Parameters")

    head.locator("button").click()
    assert head.get_attribute("aria-sort") == "descending"
    assert page(values) == sorted(page(values), reverse=True)
    head.locator("button").click()
    assert head.get_attribute("aria-sort") == "ascending"
    assert page(values) == sorted(page(values))
    head.locator("button").click()
    assert head.get_attribute("aria-sort") is None


def test_layers_are_searched(opened: Open):
    page = opened(large(4000))

    page.page.fill("#layers input", "LAYER1.3")
    found = layer_cells(page, 0)
    assert found
    assert all("layer1.3" in each for each in found)
    page.page.fill("#layers input", "no such module")
    assert layer_cells(page, 0) == []
    assert page.page.inner_text("#layers .note") == "Nothing matches."


def test_layers_fold(opened: Open):
    page = opened(large(4000))
    folded = len(layer_cells(page, 0))

    page.page.click("#layers .fold[aria-label='Unfold ResNet.layer1']")

    assert len(layer_cells(page, 0)) > folded
    assert page("document.activeElement.getAttribute('aria-label')") == "Fold ResNet.layer1"
    page.page.click("#layers button:text-is('Fold')")
    assert layer_cells(page, 0) == ["▸ResNet", "outside of modules"]


def test_a_stage_leads_into_the_timeline(opened: Open):
    page = opened(trained_run())

    page.page.locator("#stages .jump", has_text="backward").first.click()

    span = next(each for each in trained_run().traces[0].spans if each.phase == "backward")
    assert page(RANGE)[0] == span.first
    assert page(MOMENT) in range(*page(RANGE))


def test_tables_are_real_ones(opened: Open):
    page = opened(trained_run())

    for name in ("stages", "layers", "steps", "ledger"):
        assert page(f"document.querySelectorAll('#{name} table caption').length") == 1, name
        assert page(
            f"[...document.querySelectorAll('#{name} tbody tr')].every((row) => row.querySelector('th[scope]'))"
        ), name
    assert page("[...document.querySelectorAll('.data thead th')].every((cell) => cell.scope === 'col')")


def test_all_that_can_be_used_has_a_name(opened: Open):
    page = opened(on_two_cards())
    page.page.click("#largest > summary")

    nameless = page(
        "[...document.querySelectorAll('button, input, select, [tabindex=\"0\"]')].filter((each) => "
        "!(each.getAttribute('aria-label') || each.labels?.length || each.textContent.trim())).map((each) => each.outerHTML)"
    )
    assert nameless == []


def test_another_card_is_selected(opened: Open):
    run = on_two_cards()
    page = opened(run)
    assert page.page.is_visible("#trace")

    page.page.select_option("#trace", "1")
    page.until("vramscope.page.number === 1")

    trace = run.traces[1]
    assert page.settled()(CURVES)["allocated"] == allocated_curve(trace).tolist()
    assert [each.split(" ×")[0] for each in page.page.locator("#stages .jump").all_inner_texts()][:2] == [
        "model built",
        "data loaded",
    ]
    assert page.complaints == []


def test_one_history_needs_no_choice(opened: Open):
    assert not opened(trained_run()).page.is_visible("#trace-field")


@pytest.mark.parametrize(
    ("scheme", "surface"), [("light", "rgb(255, 255, 255)"), ("dark", "rgb(20, 22, 26)")]
)
def test_the_theme_is_the_systems(opened: Open, scheme: str, surface: str):
    page = opened(trained_run(), scheme=scheme)

    assert page("getComputedStyle(document.body).backgroundColor") == surface


def test_the_theme_can_be_chosen(opened: Open):
    page = opened(trained_run(), scheme="light")
    drawn = "document.querySelector('canvas').toDataURL()"
    light = page(drawn)

    page.page.click("#theme")
    page.page.click("#theme")

    assert page.page.inner_text("#theme") == "Theme: dark"
    assert page.settled()("getComputedStyle(document.body).backgroundColor") == "rgb(20, 22, 26)"
    assert page(drawn) != light
    page.page.reload()
    page("vramscope.ready")
    assert page.page.inner_text("#theme") == "Theme: dark"


def test_no_text_of_a_run_runs(opened: Open):
    page = opened(hostile())
    page.page.click("#largest > summary")
    for grouping in ("line", "category", "module"):
        page.page.click(f"[data-grouping={grouping}]")
    page.page.hover(".cell >> nth=1")
    box = plot_box(page)
    page.page.mouse.move(box["x"] + 30, box["y"] + 30)

    assert page("globalThis.hacked") is None
    assert page("document.querySelectorAll('img').length") == 0
    assert page.page.inner_text("h1").startswith(HOSTILE[:-1])
    assert HOSTILE[:-1] in page.page.inner_text("#largest")
    assert page.complaints == []


def test_no_other_script_may_run(opened: Open):
    page = opened(trained_run())

    page(
        "() => { try { const s = document.createElement('script'); s.textContent = 'globalThis.hacked = 1'; document.head.append(s); } catch { } }"
    )

    assert page("globalThis.hacked") is None
    assert any("Content Security Policy" in each or "TrustedScript" in each for each in page.complaints)


def test_bytes_are_told_as_in_python(opened: Open):
    sizes = [
        0,
        1,
        512,
        1023,
        1024,
        1152,
        9 * MIB + MIB // 8,
        10 * MIB - 1,
        1000 * MIB,
        1023 * MIB,
        3 << 40,
        5000 << 40,
    ]
    sizes += [MIB + each * MIB // 8 for each in range(16)] + [10 * MIB + each * MIB // 4 for each in range(8)]
    sizes += [100 * MIB + each * MIB // 2 for each in range(6)] + [
        int(each) for each in np.geomspace(1, 2**45, 400)
    ]

    page = opened(KINDS["nothing"]())

    assert page("(sizes) => sizes.map(vramscope.formatBytes)", sizes) == [
        format_bytes(each) for each in sizes
    ]
    changes = [*sizes, *(-each for each in sizes)]
    assert page("(sizes) => sizes.map(vramscope.formatChange)", changes) == [
        format_change(each) for each in changes
    ]


@pytest.mark.parametrize(
    ("name", "width", "scheme"), [("light", 1280, "light"), ("dark", 1280, "dark"), ("phone", 390, "light")]
)
def test_a_screenshot_is_kept(opened: Open, name: str, width: int, scheme: str):
    page = opened(large(9000), width=width, scheme=scheme)

    keep_screenshot(page, f"page_{name}")

    assert page("document.querySelector('canvas').width") > 0


def test_categories_are_numbered_as_in_python(opened: Open):
    assert opened(trained_run())("JSON.parse(document.getElementById('run').textContent).categories") == list(
        CATEGORIES
    )
