"""The report as a person sees it, in a real browser."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from selenium import webdriver
from selenium.webdriver.common.by import By

from argus_sched.harness.report import Record, page
from tests.unit.harness.sample_run import record

CHROMIUM, DRIVER = shutil.which("chromium"), shutil.which("chromedriver")
FLAGS = (
    "--headless=new --no-sandbox --disable-gpu --disable-quic --no-first-run --disable-background-networking "
    "--disable-component-update --disable-sync --disable-dev-shm-usage --window-size=1280,1600"
)

pytestmark = [
    pytest.mark.browser,
    pytest.mark.skipif(not (CHROMIUM and DRIVER), reason="needs chromium and chromedriver"),
]


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[webdriver.Chrome]:
    options = webdriver.ChromeOptions()
    options.binary_location = str(CHROMIUM)
    for flag in [*FLAGS.split(), f"--user-data-dir={tmp_path_factory.mktemp('profile')}"]:
        options.add_argument(flag)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    driver = webdriver.Chrome(options=options, service=webdriver.ChromeService(str(DRIVER)))
    yield driver
    driver.quit()


def shown(browser: webdriver.Chrome, folder: Path, run: Record) -> webdriver.Chrome:
    path = folder / "report.html"
    path.write_text(page(run))
    browser.get(path.as_uri())
    return browser


def texts(browser: webdriver.Chrome, selector: str) -> list[str]:
    return [element.text for element in browser.find_elements(By.CSS_SELECTOR, selector)]


def test_a_held_run_shows_its_lanes_faults_and_figures(browser: webdriver.Chrome, tmp_path: Path) -> None:
    shown(browser, tmp_path, record())
    assert texts(browser, "#verdict") == ["held"]
    assert [e.get_attribute("data-lane") for e in browser.find_elements(By.CSS_SELECTOR, ".lane")] == [
        "w1",
        "w2",
        "w3",
    ]
    assert texts(browser, ".fault text") == ["kill", "terminate", "freeze", "clock", "kill"]
    for state in ("leader", "heir", "standby", "frozen"):
        assert browser.find_elements(By.CSS_SELECTOR, f".lane .piece.{state}"), state
    assert len(browser.find_elements(By.CSS_SELECTOR, ".lane .dead")) == 2
    fires = [
        int(e.get_attribute("data-count") or 0)
        for e in browser.find_elements(By.CSS_SELECTOR, ".lane .fires")
    ]
    assert sum(fires) == 320
    assert texts(browser, "#expected b") == ["320"]
    assert texts(browser, "#lost b") == texts(browser, "#doubled b") == ["0"]
    assert texts(browser, "#figures tbody tr[data-fault=freeze] td")[3:7] == [
        "5.0 ms",
        "2.90 s",
        "2.90 s",
        "2.90 s",
    ]
    assert browser.find_elements(By.CSS_SELECTOR, ".strip .leaderless")
    assert not browser.find_elements(By.CSS_SELECTOR, "#violations")


def test_a_violated_run_names_job_due_time_and_the_events_around_it(
    browser: webdriver.Chrome, tmp_path: Path
) -> None:
    shown(browser, tmp_path, record(doubled=True))
    assert texts(browser, "#verdict") == ["violated"]
    first = browser.find_element(By.CSS_SELECTOR, "#violations details")
    assert "job_0 due 2027-01-15T08:00:08.000Z ran twice" in first.text
    first.find_element(By.CSS_SELECTOR, "summary").click()
    assert '"event":"started"' in first.text


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_it_is_readable_in_light_and_dark(browser: webdriver.Chrome, tmp_path: Path, scheme: str) -> None:
    features = [{"name": "prefers-color-scheme", "value": scheme}]
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": features})
    shown(browser, tmp_path, record())
    styles = "const s = getComputedStyle(document.body); return [s.color, s.backgroundColor]"
    ink, paper = (luminance(colour) for colour in browser.execute_script(styles))
    assert (max(ink, paper) + 0.05) / (min(ink, paper) + 0.05) > 7
    assert (paper > ink) == (scheme == "light")


def test_nothing_overflows_and_the_console_is_clean(browser: webdriver.Chrome, tmp_path: Path) -> None:
    shown(browser, tmp_path, record(doubled=True))
    wider = "return document.documentElement.scrollWidth > document.documentElement.clientWidth"
    assert browser.execute_script(wider) is False
    assert browser.get_log("browser") == []  # type: ignore[no-untyped-call]  # selenium


def test_it_is_readable_on_a_phone(browser: webdriver.Chrome, tmp_path: Path) -> None:
    phone = {"width": 390, "height": 844, "deviceScaleFactor": 1, "mobile": True}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", phone)
    try:
        shown(browser, tmp_path, record(doubled=True))
        assert browser.execute_script("return document.documentElement.scrollWidth") <= 390
        tiles = browser.find_elements(By.CSS_SELECTOR, ".tile")
        assert len({round(tile.size["width"]) for tile in tiles}) == 1
        # Whichever figure is in sight, its fault is beside it.
        names = "const t = document.querySelector('#figures').parentElement; t.scrollLeft = 300; "
        names += "return document.querySelector('#figures tbody th').getBoundingClientRect().left"
        assert 0 <= browser.execute_script(names) < 60
    finally:
        browser.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})


def luminance(colour: str) -> float:
    """The relative luminance of `rgb(r, g, b)`, as WCAG defines it."""
    channels = [int(part) / 255 for part in colour.strip("rgba()").split(",")[:3]]
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]
