"""Draw lines as HTML that is readable on light and dark pages; all texts are escaped."""

import re
from collections.abc import Iterable
from html import escape

from todo_tools.rendering._lines import Line, Progress, Span

# Text has the colour of the page, so it is readable on every background. Icons and bars have the
# notebook's own colours, or colours that are visible on white and on black; some of the text's is
# mixed in, to make Jupyter's orange dark enough. The element `samp` gives the font of printed text,
# also where a page has removed these styles.
STYLE = """<style>
.todo-tools { color: inherit; line-height: 1.5; overflow-wrap: anywhere; max-width: 60em;
  --todo-success: color-mix(in srgb, currentColor 30%,
    var(--jp-success-color1, var(--vscode-charts-green, #2b8a3e))); }
.todo-tools samp { display: flex; white-space: pre-wrap;
  font-family: var(--jp-code-font-family, var(--vscode-editor-font-family, monospace));
  font-size: var(--jp-code-font-size, var(--vscode-editor-font-size, inherit)); }
.todo-tools .todo-lead { flex: none; white-space: pre; }
.todo-tools .todo-dim { opacity: .75; } .todo-tools .todo-muted { opacity: .85; }
.todo-tools .todo-accent { color: color-mix(in srgb, currentColor 30%,
  var(--jp-info-color1, var(--vscode-charts-blue, #0a84c1))); }
.todo-tools .todo-warning { color: color-mix(in srgb, currentColor 30%,
  var(--jp-warn-color1, var(--vscode-charts-orange, #c76a00))); }
.todo-tools .todo-success { color: var(--todo-success); }
.todo-tools .todo-error { color: color-mix(in srgb, currentColor 30%,
  var(--jp-error-color1, var(--vscode-charts-red, #dc3535))); }
.todo-tools .todo-in_progress .todo-body { font-weight: 600; }
.todo-tools progress { appearance: none; border: 0; width: 12em; height: .4em;
  color: var(--todo-success); background: rgb(128 128 128 / .3); }
.todo-tools progress::-webkit-progress-bar { background: rgb(128 128 128 / .3); }
.todo-tools progress::-webkit-progress-value { background: var(--todo-success); }
.todo-tools progress::-moz-progress-bar { background: var(--todo-success); }
</style>"""


def html_of(lines: Iterable[Line], progress: Progress | None = None) -> str:
    """Draw lines as HTML, with a progress bar below if they are a list with items."""
    rows = "".join(map(_line_html, lines))
    ignored = "tex2jax_ignore mathjax_ignore"  # notebooks do not render formulas in this frame
    shown = f'<div role="list">{rows}</div>{_bar(progress)}'
    return f'{STYLE}<div class="todo-tools {ignored}">{shown}</div>'


def escaped(text: str) -> str:
    """Escape a text, so that it is neither HTML nor a formula, which may contain a link."""
    # A delimiter inside its own element does not start a formula.
    return re.sub(r"[$\\]", r"<span>\g<0></span>", escape(text))


def _line_html(line: Line) -> str:
    status = f" todo-{line.status}" if line.status else ""
    # Keep the width of columns and indents on pages that collapse spaces.
    lead = "".join(map(_span_html, line.lead)).replace("  ", "\u00a0\u00a0")
    before = f'<span class="todo-lead">{lead}</span>' if lead else ""
    body = "".join(map(_span_html, line.body))
    return (
        f'<div class="todo-line{status}" role="listitem"><samp>{before}'
        f'<bdi class="todo-body">{body}</bdi></samp></div>'
    )


def _span_html(span: Span) -> str:
    html = escaped(span.text)
    if span.strike:
        html = f"<s>{html}</s>"
    if span.bold:
        html = f"<b>{html}</b>"
    return f'<span class="todo-{span.token}">{html}</span>' if span.token else html


def _bar(progress: Progress | None) -> str:
    if progress is None or not progress.total:
        return ""
    share = f"{progress.finished} of {progress.total} finished"
    return (
        f'<progress value="{progress.finished}" max="{progress.total}" '
        f'aria-label="{share}" title="{share}"></progress>'
    )
