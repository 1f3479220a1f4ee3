"""The site: every link leads somewhere, and nothing is loaded from anywhere else."""

import re
import subprocess
import sys
from html.parser import HTMLParser
from urllib.parse import unquote, urlsplit

import pytest
from conftest import SAMPLES, requests, wait_for

HOME = SAMPLES.parent
WRITTEN = [*HOME.glob("*.md"), *HOME.glob("*/*.md")]
LINK = re.compile(r"\]\(([^)\s]+)\)")
OWN = {"file", "data", "about", "chrome", "blob"}
"""Addresses that are no request to another machine."""


def plain(page):
    """Return the text of a page without its blocks of code."""
    return re.sub(r"^```.*?^```", "", page.read_text(), flags=re.MULTILINE | re.DOTALL)


def anchors(page):
    """Return the anchors of the headings, as forges make them."""
    found = set()
    for heading in re.findall(r"^#+ (.*)$", plain(page), re.MULTILINE):
        text = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading).lower()
        found.add(re.sub(r"[^\w\- ]", "", text).strip().replace(" ", "-"))
    return found


@pytest.mark.parametrize("page", WRITTEN, ids=lambda page: f"{page.parent.name}/{page}")
def test_every_link_of_a_page_leads_somewhere(page):
    for link in LINK.findall(plain(page)):
        parts = urlsplit(link)
        if parts.scheme:
            assert parts.scheme == "https"
            continue
        target = (page.parent / parts.path).resolve() if parts.path else page
        assert target.is_file(), link
        assert not parts.fragment or parts.fragment in anchors(target), link


class Page(HTMLParser):
    """What a page of the site refers to."""

    LOADED = frozenset({"src", "srcset", "poster", "data"})

    def __init__(self, text):
        super().__init__()
        self.ids, self.links, self.loaded = set(), [], []
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        for name, value in attributes:
            if name == "id":
                self.ids.add(value)
            elif name in self.LOADED or (tag == "link" and name == "href"):
                self.loaded.append(value)
            elif name == "href":
                self.links.append(value)


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """The site, as ``make docs`` builds it."""
    pytest.importorskip("material", reason="pip install 'nnkgraph[docs]'")
    folder = tmp_path_factory.mktemp("site")
    line = ["mkdocs", "build", "--strict", "--config-file", "docs/site/mkdocs.yml"]
    done = subprocess.run(
        [sys.executable, "-m", *line, "--site-dir", folder],
        cwd=HOME,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return folder


@pytest.fixture(scope="module")
def pages(site):
    return {path: Page(path.read_text()) for path in site.rglob("*.html")}


def test_every_page_of_the_project_is_in_the_site_and_its_navigation(site, pages):
    links = {
        (site / unquote(link)).resolve() for link in pages[site / "index.html"].links
    }
    for page in [*HOME.glob("docs/*.md"), HOME / "examples/README.md"]:
        name = page.relative_to(HOME).as_posix().replace("README.md", "index.md")
        assert (site / name).with_suffix(".html").resolve() in links


def test_every_link_of_the_site_leads_somewhere(site, pages):
    for path, page in pages.items():
        if path.name == "404.html":  # is served for any address
            continue
        for link in page.links:
            parts = urlsplit(link)
            if parts.scheme or not (parts.path or parts.fragment):
                continue
            target = path.parent / unquote(parts.path) if parts.path else path
            target = target / "index.html" if target.is_dir() else target
            target = target.resolve()
            assert target.is_file(), f"{path}: {link}"
            if parts.fragment and target in pages:
                ids = pages[target].ids | {"__skip"}
                assert unquote(parts.fragment) in ids, f"{path}: {link}"


def test_nothing_is_loaded_from_anywhere_else(site, pages):
    for path, page in pages.items():
        for address in page.loaded:
            assert urlsplit(address).scheme in {"", "data"}, f"{path}: {address}"
            assert not address.startswith("//"), f"{path}: {address}"
    for path in site.rglob("*.css"):
        for address in re.findall(
            r"(?:url\(|@import)\s*[\"']?([^\"')]*)", path.read_text()
        ):
            assert urlsplit(address).scheme in {"", "data"}, f"{path}: {address}"


SHOWN = (
    *("index.html", "docs/choices.html", "docs/reference.html", "docs/search.html"),
    *("docs/api.html", "examples/index.html"),
)


@pytest.mark.parametrize("width", [1280, 400])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_a_browser_asks_for_nothing_and_shows_all(browser, site, width, scheme):
    size = {"width": width, "height": 900, "deviceScaleFactor": 1}
    size["mobile"] = width < 600
    likes = [{"name": "prefers-color-scheme", "value": scheme}]
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": likes})
    try:
        for name in SHOWN:
            for log in ("browser", "performance"):
                browser.get_log(log)
            browser.get((site / name).as_uri())
            at = "document.documentElement.scrollWidth"
            assert browser.execute_script(f"return {at} <= innerWidth"), name
            assert browser.get_log("browser") == []
            asked = [urlsplit(one).scheme for one in requests(browser)]
            assert set(asked) <= OWN
            ink = "return getComputedStyle(document.body).backgroundColor"
            light = sum(map(int, re.findall(r"\d+", browser.execute_script(ink))[:3]))
            assert (light > 380) == (scheme == "light")
    finally:
        browser.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})
        browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": []})


def test_the_search_works_from_a_disk(browser, site):
    browser.get((site / "docs" / "choices.html").as_uri())
    wait_for(
        lambda: browser.find_elements("css selector", "[data-md-component=search]")
    )
    field = browser.find_element("css selector", "input.md-search__input")
    browser.execute_script("arguments[0].focus()", field)
    field.send_keys("certificate")
    found = "a.md-search-result__link"
    links = wait_for(lambda: browser.find_elements("css selector", found))
    names = {urlsplit(one.get_attribute("href")).path for one in links}
    assert any(name.endswith("/docs/how_it_works.html") for name in names)
    assert {urlsplit(one).scheme for one in requests(browser)} <= OWN
