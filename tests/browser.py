"""A browser without a window, to test what a reader sees."""

import html
import json
import re
import shutil
import struct
import subprocess
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

NAMES = ("chromium", "chromium-browser", "google-chrome")

# This script measures what a reader sees, and writes it into the page.
MEASURE = """<script>
const numbers = (color) => {
  const [r, g, b, a = 1] = color.match(/[\\d.]+/g).map(Number);
  return color.startsWith("color(") ? [255 * r, 255 * g, 255 * b, a] : [r, g, b, a];
};
const luminance = (rgb) => {
  const [r, g, b] = rgb.map((v) => v / 255).map(
    (v) => (v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4));
  return 0.2126 * r + 0.7152 * g + 0.0722 * b;
};
const contrast = (element) => {
  let opacity = 1, below = [255, 255, 255, 0];
  for (let at = element; at; at = at.parentElement) {
    const style = getComputedStyle(at);
    opacity *= Number(style.opacity);
    if (below[3] === 0) below = numbers(style.backgroundColor);
  }
  const text = numbers(getComputedStyle(element).color);
  const seen = [0, 1, 2].map((i) => text[i] * opacity + below[i] * (1 - opacity));
  const [dark, light] = [luminance(seen), luminance(below.slice(0, 3))].sort((x, y) => x - y);
  return (light + 0.05) / (dark + 0.05);
};
const all = (selector) => [...document.querySelectorAll(selector)];
const measured = document.createElement("pre");
measured.id = "measured";
measured.textContent = JSON.stringify({
  views: all(".todo-tools").map((e) => e.innerText),
  fonts: all(".jp-OutputArea-output samp, .jp-OutputArea-output pre")
    .map((e) => getComputedStyle(e)).map((style) => `${style.fontFamily} ${style.fontSize}`),
  contrasts: all(".todo-tools *")
    .filter((e) => [...e.childNodes].some((n) => n.nodeType === 3 && n.data.trim()))
    .map((e) => [e.innerText, contrast(e)]),
});
document.body.append(measured);
</script>"""


def measure(page: Path) -> dict[str, Any]:
    """Return what the script above has written into the page."""
    found = re.search(r'<pre id="measured">(.*?)</pre>', browse(page, "--dump-dom"), re.DOTALL)
    assert found
    measured: dict[str, Any] = json.loads(html.unescape(found[1]))
    return measured


def browse(page: Path, *options: str) -> str:
    """Open a page in Chromium without a window and without a network."""
    offline = ["--host-resolver-rules=MAP * ~NOTFOUND", "--disable-background-networking"]
    chromium = next(filter(None, map(shutil.which, NAMES)), None)
    if chromium is None:
        pytest.skip(f"no browser on this machine: none of {', '.join(NAMES)} is on the PATH")
    quiet = ["--no-first-run", "--disable-component-update", "--disable-sync", "--disable-gpu"]
    own = ["--headless", "--no-sandbox", f"--user-data-dir={page.parent / 'profile'}"]
    command = [chromium, *own, *quiet, *offline, *options, page.as_uri()]
    done = subprocess.run(command, check=True, capture_output=True, timeout=120)
    return done.stdout.decode()


def read_png(data: bytes) -> tuple[bytes, list[bytes]]:
    """The colour of the upper left corner, and the stored rows."""
    chunks = dict[bytes, bytes]()
    for kind, content in png_chunks(data):
        chunks[kind] = chunks.get(kind, b"") + content
    width, height, depth, colour = struct.unpack(">IIBB", chunks[b"IHDR"][:10])
    assert (depth, colour) in {(8, 2), (8, 6)}
    stored = zlib.decompress(chunks[b"IDAT"])
    size = 1 + width * (3 if colour == 2 else 4)
    rows = [stored[at * size : (at + 1) * size] for at in range(height)]
    return rows[0][1:4], rows  # the first pixel is stored as it is, because it has no neighbours


def png_chunks(data: bytes) -> Iterator[tuple[bytes, bytes]]:
    at = 8
    while at < len(data):
        (length,) = struct.unpack(">I", data[at : at + 4])
        yield data[at + 4 : at + 8], data[at + 8 : at + 8 + length]
        at += 12 + length
