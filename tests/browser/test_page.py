"""The self-contained page in a real browser, opened from disk with no network."""

from __future__ import annotations

import re

import pytest
from recorded_traces import trace

from tilelab_viz import export_html

pytestmark = pytest.mark.browser


@pytest.fixture
def view(open_page, tmp_path):
    """Opens the page of a recorded trace and waits for the view."""

    def open_view(name="matmul", edit=lambda text: text, **options):
        path = tmp_path / f"{name}.html"
        path.write_text(edit(export_html(trace(name))), encoding="utf-8")
        page = open_page(**options)
        page.goto(path.as_uri())
        page.locator(".tl-program .tl-row").first.wait_for()
        return page

    return open_view


def current(page) -> str:
    """The name of the pass that is shown."""
    return page.locator(".tl-title h3").inner_text()


def focus(page) -> None:
    page.locator(".tl-program").focus()


def test_the_view_draws_itself_and_puts_the_static_form_away(view, shot):
    page = view()
    assert page.locator(".tl-pass").count() == 20
    assert current(page) == "3 simplify"
    assert not page.locator("[data-tilelab-static]").is_visible()
    shot(page, "page-light")


def test_without_javascript_the_page_still_reads(open_page, tmp_path):
    path = tmp_path / "page.html"
    path.write_text(export_html(trace("matmul")), encoding="utf-8")
    page = open_page(java_script_enabled=False)
    page.goto(path.as_uri())
    picture = page.locator("img").bounding_box()
    assert picture["width"] > 900
    assert page.get_by_text("10 of 18 passes changed the program").first.is_visible()
    page.locator("summary", has_text="plan_pipeline").click()
    assert page.locator("details[open] ins", has_text="3, ").first.is_visible()


def test_the_list_has_numbers_stages_times_badges_and_counts(view):
    text = view().locator(".tl-pass", has_text="plan_pipeline").inner_text()
    assert re.sub(r"\s+", " ", text) == "8 plan_pipeline ● changed tile · 0.85 ms +17 −6"


def test_j_and_k_go_through_the_passes(view):
    page = view()
    focus(page)
    page.keyboard.press("j")
    assert current(page) == "4 split_loops"
    page.keyboard.press("k")
    page.keyboard.press("k")
    assert current(page) == "2 check_tiles"


def test_u_hides_idle_passes_and_says_how_many_are_left(view):
    page = view()
    focus(page)
    page.keyboard.press("u")
    assert page.locator(".tl-count").inner_text() == "12 of 20"
    assert page.locator(".tl-pass").count() == 12
    page.keyboard.press("j")
    assert current(page) == "6 plan_gemms"
    page.reload()
    page.locator(".tl-pass").first.wait_for()
    assert page.locator(".tl-pass").count() == 12, "the choice is kept"


def test_the_filter_narrows_the_list_by_name(view):
    page = view()
    page.get_by_label("Filter passes").fill("plan_")
    assert page.locator(".tl-pass").count() == 6


def test_s_goes_through_side_by_side_inline_and_after_only(view):
    page = view()
    focus(page)
    assert page.locator(".tl-two").count() > 0
    page.keyboard.press("s")
    assert page.locator(".tl-two").count() == 0
    signs = page.locator(".tl-program .tl-sign").all_inner_texts()
    assert signs.count("−") == signs.count("+") == 3
    page.keyboard.press("s")
    assert page.locator(".tl-program .tl-row").count() == 17
    assert page.locator(".tl-fold").count() == 0
    assert page.locator(".tl-program ins").first.inner_text() == "6"


def test_n_and_p_step_through_changes_and_on_to_the_next_pass(view):
    page = view()
    focus(page)
    page.keyboard.press("n")
    assert "ceildiv(768" in page.locator(".tl-row.tl-current").inner_text()
    page.keyboard.press("n")
    assert "T.serial" in page.locator(".tl-row.tl-current").inner_text()
    page.keyboard.press("n")
    assert current(page) == "6 plan_gemms"
    assert "T.tile.gemm" in page.locator(".tl-row.tl-current").inner_text()


def test_search_finds_a_token_in_the_pass_that_brought_it(view, shot):
    page = view()
    focus(page)
    page.keyboard.press("/")
    page.keyboard.type("ldmatrix_trans")
    assert page.locator(".tl-results h4").first.inner_text() == "12 lower_gemm (1)"
    shot(page, "page-search")
    page.keyboard.press("Enter")
    assert current(page) == "12 lower_gemm"
    assert "ldmatrix_trans" in page.locator(".tl-row.tl-current").inner_text()


def test_search_reads_regular_expressions_and_stops_slow_ones(view):
    page = view()
    page.locator(".tl-search input[type=checkbox]").check()
    box = page.locator(".tl-search input[type=search]")
    status = page.locator(".tl-search-status")
    box.fill(r"cp_async_\w+_group")
    page.locator(".tl-results h4", has_text="17 insert_waits").wait_for()
    box.fill("(")
    page.wait_for_function("e => e.innerText.includes('cannot be used')", arg=status.element_handle())
    box.fill(r"(\w+\s*)+$x")
    page.wait_for_function("e => e.innerText.includes('stopped')", arg=status.element_handle())


def test_a_line_of_the_program_lights_its_source_line(view):
    page = view()
    page.locator(".tl-pass", has_text="lower_gemm").click()
    page.locator(".tl-two .tl-cell:last-child", has_text="T.ptx.mma").click()
    lit = page.locator(".tl-line.tl-linked")
    assert lit.count() == 1
    assert "T.gemm(A_shared, B_shared, C_local)" in lit.inner_text()


def test_a_source_line_lights_what_came_of_it_in_every_pass(view, shot):
    page = view()
    page.locator(".tl-pass", has_text="lower_gemm").click()
    page.locator(".tl-line", has_text="T.gemm").click()
    assert page.locator(".tl-selection span").inner_text() == "◆ line 14: 67 lines in 19 of the entries"
    chip = page.locator(".tl-pass", has_text="lower_gemm").locator(".tl-chip")
    assert chip.inner_text() == "◆ 7"
    assert page.locator(".tl-two .tl-cell:last-child.tl-linked").count() == 7
    shot(page, "page-linked")


def test_enter_on_a_line_links_it_without_a_mouse(view):
    page = view()
    focus(page)
    page.keyboard.press("n")
    page.keyboard.press("Enter")
    assert "with T.Kernel" in page.locator(".tl-line.tl-linked").inner_text()
    page.keyboard.press("Escape")
    assert page.locator(".tl-line.tl-linked").count() == 0


def test_escape_leaves_the_view_and_alt_left_goes_back(view):
    page = view()
    focus(page)
    page.keyboard.press("j")
    page.keyboard.press("Alt+ArrowLeft")
    assert current(page) == "3 simplify"
    page.keyboard.press("Escape")
    assert page.evaluate("document.activeElement === document.body")


def test_question_mark_shows_the_keys(view):
    page = view()
    focus(page)
    page.keyboard.press("?")
    assert page.locator(".tl-help kbd").first.is_visible()


def test_idle_and_skipped_passes_say_why(view):
    page = view()
    page.locator(".tl-pass", has_text="plan_roles").click()
    said = page.locator(".tl-reason").inner_text()
    assert said == "Why it was skipped: sm_80 has no asynchronous barrier that a loading warp could signal"
    page.locator(".tl-pass", has_text="guard_bounds").click()
    assert page.locator(".tl-reason").inner_text().startswith("Why nothing changed: 512, 768 and 1024")


def test_notes_link_to_their_lines(view):
    page = view()
    page.locator(".tl-pass", has_text="plan_copies").click()
    assert page.locator(".tl-notes li").count() == 3
    page.locator(".tl-notes li", has_text="C is stored").get_by_role("button").click()
    assert "T.copy(C_local" in page.locator(".tl-line.tl-linked").inner_text()


def test_folds_open_by_ten_or_whole(view):
    page = view("large")
    rows, fold = page.locator(".tl-row"), page.locator(".tl-fold").nth(1)
    before = rows.count()
    assert fold.inner_text().startswith("… 33 lines")
    fold.get_by_role("button", name="Show 10 more").click()
    assert rows.count() == before + 10
    assert fold.inner_text().startswith("… 23 lines")
    fold.get_by_role("button", name="Show all").click()
    assert rows.count() == before + 33


def test_renames_can_be_left_out_of_the_count(view):
    page = view()
    page.locator(".tl-pass", has_text="name_variables").click()
    assert page.locator(".tl-changes").inner_text() != "No line changed"
    page.get_by_label("Ignore renames and indents").check()
    assert page.locator(".tl-changes").inner_text() == "No line changed"


def test_following_a_buffer_counts_its_lines(view):
    page = view()
    page.get_by_label("Follow a buffer").select_option("C_local")
    assert page.locator(".tl-selection span").inner_text().startswith("◆ C_local: ")
    assert page.locator(".tl-cell.tl-linked").count() > 0


def test_the_target_code_comes_last_and_can_be_downloaded(view):
    page = view()
    page.locator(".tl-pass").last.click()
    assert "__global__" in page.locator(".tl-program").inner_text()
    with page.expect_download() as waiting:
        page.get_by_role("button", name="Download").click()
    assert waiting.value.suggested_filename == "matmul.19.cuda_code.cu"


def test_a_failed_compile_opens_on_its_error(view, shot):
    page = view("failed")
    assert current(page) == "10 plan_layouts"
    assert "two operations want different layouts" in page.locator(".tl-reason.tl-is-failed").inner_text()
    shot(page, "page-failed")


def test_another_schema_version_shows_a_note_and_the_static_form(open_page, tmp_path):
    text = export_html(trace("matmul")).replace(
        '"schema": "tilelab.trace.v1"', '"schema": "tilelab.trace.v7"'
    )
    path = tmp_path / "page.html"
    path.write_text(text, encoding="utf-8")
    page = open_page()
    page.goto(path.as_uri())
    note = page.locator(".tl-note").inner_text()
    assert "tilelab.trace.v7" in note
    assert "tilelab.trace.v1" in note
    assert page.locator("img").bounding_box()["width"] > 500


def test_names_outside_ascii_and_markup_are_shown_as_they_are(view, shot):
    page = view("chinese", locale="zh-TW")
    assert page.locator(".tl-header h2").inner_text() == "矩陣乘法"
    assert page.get_by_label("隱藏未變更").is_visible()
    page.locator(".tl-pass").nth(3).click()
    assert page.locator(".tl-program b").count() == 0
    shot(page, "page-chinese")


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_nothing_stands_in_the_way_of_a_screen_reader(view, violations, shot, scheme):
    page = view(color_scheme=scheme)
    page.locator(".tl-pass", has_text="lower_gemm").click()
    page.locator(".tl-line", has_text="T.gemm").click()
    shot(page, f"page-{scheme}-linked")
    assert violations(page) == []


def test_a_narrow_page_puts_the_list_above(view, shot):
    page = view()
    page.set_viewport_size({"width": 480, "height": 900})
    listed, shown = (page.locator(name).bounding_box() for name in (".tl-list", ".tl-right"))
    assert listed["y"] + listed["height"] <= shown["y"] + 1
    shot(page, "page-narrow")


def test_sixty_passes_of_four_hundred_lines_draw_fast(view):
    page = view("large")
    took = page.evaluate("performance.getEntriesByName('tilelab-mount')[0].duration")
    assert took < 300
