"""Results as HTML for notebooks: no scripts, no files, figures as inline SVG.

Text has the colour of the page (currentColor), fills are translucent, so that light and dark pages both look right.
Everything that comes from outside (tokens, names, sentences) is escaped.
"""

from __future__ import annotations

import html
import json
import math
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .results import Estimate, EstimateList, Trigger

ACCENT = "#3b82f6"  # readable on white and on black
WARN = "#d97706"
GOOD = "#16a34a"
WIDTH = 560  # of figures, in pixels
SHOWN = 100  # rows of a list

BOX = "font-family:system-ui,sans-serif;font-size:13px;line-height:1.5;max-width:720px"
MONO = "font-family:ui-monospace,Menlo,Consolas,monospace;font-size:12px"
FAINT = "opacity:.65"


def text(value: object) -> str:
    """Escaped for HTML, with what cannot be seen made visible."""
    shown = "".join(c if c.isprintable() else json.dumps(c)[1:-1] for c in str(value))
    return html.escape(shown, quote=True)


def number(value: float) -> str:
    return f"{value:.3g}" if math.isfinite(value) else str(value)


def percent(share: float) -> str:
    return f"{100 * share:.3g} %"


def _badge(words: str, colour: str) -> str:
    return (
        f'<span style="border:1px solid {colour};border-radius:9px;padding:0 7px;margin-right:6px;'
        f'font-size:12px">{text(words)}</span>'
    )


def _log10(p: float) -> float:
    return math.log10(p) if p > 0 else -math.inf


class LogAxis:
    """Decades from left to right over the positive numbers among these, of at least two decades."""

    def __init__(self, values: Iterable[float], left: float = 12.0, right: float = WIDTH - 12.0) -> None:
        logs = [_log10(v) for v in values if v > 0 and math.isfinite(v)] or [-6.0]
        self.low, self.high = math.floor(min(logs) - 0.05), math.ceil(max(logs) + 0.05)
        if self.high > 0:
            self.high = 0
        self.low = min(self.low, self.high - 2)
        self.left, self.right = left, right

    def x(self, p: float) -> float:
        at = max(self.low, min(self.high, _log10(p)))
        return self.left + (at - self.low) / (self.high - self.low) * (self.right - self.left)

    def ticks(self) -> list[int]:
        step = max(1, -(-(self.high - self.low) // 8))
        return list(range(self.high, self.low - 1, -step))

    def svg(self, y: float, top: float) -> str:
        parts = []
        for decade in self.ticks():
            x = self.left + (decade - self.low) / (self.high - self.low) * (self.right - self.left)
            anchor = "start" if x - self.left < 10 else "end" if self.right - x < 10 else "middle"
            parts.append(f'<line x1="{x:.1f}" x2="{x:.1f}" y1="{top}" y2="{y}" stroke="currentColor" stroke-opacity=".15"/>')
            label = "1" if decade == 0 else f'10<tspan dy="-4" font-size="8">{decade}</tspan>'
            parts.append(f'<text x="{x:.1f}" y="{y + 14}" text-anchor="{anchor}" font-size="11" fill="currentColor">{label}</text>')
        return "".join(parts)


def _svg(height: float, label: str, body: str, width: float = WIDTH) -> str:
    return (
        f'<svg role="img" aria-label="{text(label)}" viewBox="0 0 {width} {height}" width="{width}" height="{height}" '
        f'style="max-width:100%;height:auto;display:block;color:inherit;background:none">{body}</svg>'
    )


def interval_svg(e: Estimate) -> str:
    low, high = e.interval
    axis = LogAxis([e.p, low, high, *e.replicas])
    y = 22.0
    a, b = axis.x(low), axis.x(high)
    parts = [
        axis.svg(44, 4),
        f'<rect x="{a:.1f}" y="{y - 5}" width="{max(b - a, 1):.1f}" height="10" rx="5" fill="{ACCENT}" fill-opacity=".35">'
        f"<title>95 % interval {number(low)} to {number(high)}</title></rect>",
    ]
    for p in e.replicas:
        if p > 0:
            x = axis.x(p)
            parts.append(
                f'<line x1="{x:.1f}" x2="{x:.1f}" y1="{y - 9}" y2="{y + 9}" stroke="currentColor" stroke-opacity=".45">'
                f"<title>a replica: {number(p)}</title></line>"
            )
    if e.p > 0:
        parts.append(f'<circle cx="{axis.x(e.p):.1f}" cy="{y}" r="5" fill="{ACCENT}"><title>p = {number(e.p)}</title></circle>')
    return _svg(62, f"p = {number(e.p)}, 95 % interval {number(low)} to {number(high)}", "".join(parts))


def after_levels(e: Estimate) -> list[float]:
    """The probability to come so far, after each level."""
    shares, p = [1.0], 1.0
    for level in e.levels:
        p *= level.survive_fraction
        shares.append(p)
    return shares


def levels_svg(e: Estimate) -> str:
    """Steps downwards: log10 of the share that came so far, by level."""
    shares = [p for p in after_levels(e) if p > 0]
    if len(shares) < 2:
        return ""
    height, left, top, bottom = 130.0, 44.0, 8.0, 102.0
    lowest = min(-1.0, math.floor(_log10(min(shares))))
    step = max(1, math.ceil(-lowest / 5))

    def y(log: float) -> float:
        return top + log / lowest * (bottom - top)

    def x(k: int) -> float:
        return left + (WIDTH - 12 - left) * k / (len(shares) - 1)

    parts = []
    for decade in range(0, int(lowest) - 1, -step):
        at = y(decade)
        label = "1" if decade == 0 else f'10<tspan dy="-4" font-size="8">{decade}</tspan>'
        parts.append(f'<line x1="{left}" x2="{WIDTH - 12}" y1="{at:.1f}" y2="{at:.1f}" stroke="currentColor" stroke-opacity=".15"/>')
        parts.append(f'<text x="{left - 6}" y="{at + 4:.1f}" text-anchor="end" font-size="11" fill="currentColor">{label}</text>')
    points = " ".join(f"{x(k):.1f},{y(_log10(p)):.1f}" for k, p in enumerate(shares))
    parts.append(f'<polyline points="{points}" fill="none" stroke="{ACCENT}" stroke-width="1.5"/>')
    for k, p in enumerate(shares[1:], 1):
        level = e.levels[k - 1]
        said = (
            f"level {k}: score {number(level.level)}, survivors {percent(level.survive_fraction)} of {level.particles}, "
            f"accepted moves {percent(level.acceptance)}, p so far {number(p)}"
        )
        parts.append(f'<circle cx="{x(k):.1f}" cy="{y(_log10(p)):.1f}" r="3.5" fill="{ACCENT}"><title>{text(said)}</title></circle>')
    parts.append(
        f'<text x="{WIDTH - 12}" y="{height - 8}" text-anchor="end" font-size="11" fill="currentColor" '
        f'fill-opacity=".65">{len(shares) - 1} levels: the share of particles that came so far</text>'
    )
    return _svg(height, f"{len(shares) - 1} levels", "".join(parts))


def _mark(words: str, title: str = "") -> str:
    return (
        f'<span title="{text(title)}" style="background:{ACCENT}40;border-bottom:2px solid {ACCENT};border-radius:2px">'
        f"{text(words)}</span>"
    )


def trigger_html(e: Estimate, trigger: Trigger) -> str:
    """The text, with the tokens marked that most triggers share there; of sampled text, what matched."""
    if trigger.continuation is not None:
        said = trigger.continuation
        begin, end = trigger.match or (0, 0)
        answer = text(said[:begin]) + (_mark(said[begin:end], "the match") if end > begin else "") + text(said[end:])
        return f'<span style="{FAINT}">{text(trigger.prompt or "")}</span>{answer}'
    if len(trigger.pieces) != len(trigger.tokens) or not trigger.pieces:
        return text(trigger.text or " ".join(map(str, trigger.tokens)))
    deciding = {(position.position, position.token): position for position in e.positions}
    parts = []
    for k, (token, piece) in enumerate(zip(trigger.tokens, trigger.pieces)):
        position = deciding.get((k, token))
        said = f"position {k}: in {percent(position.share)} of these, in {percent(position.prior)} of all" if position else ""
        parts.append(_mark(piece, said) if position else text(piece))
    return "".join(parts)


def _triggers(e: Estimate) -> str:
    if not e.triggers:
        return ""
    rows = "".join(
        f'<div style="{MONO};overflow-wrap:anywhere;white-space:pre-wrap;text-align:left">{trigger_html(e, trigger)}</div>'
        for trigger in e.triggers[:8]
    )
    shared = "".join(
        f'<div>position {p.position} is <span style="{MONO}">{text(json.dumps(p.text, ensure_ascii=False))}</span> in '
        f"{percent(p.share)} <span style=\"{FAINT}\">(of all inputs {percent(p.prior)})</span></div>"
        for p in e.positions[:6]
    )
    return f'<div style="margin-top:8px"><b>Inputs on which it happens</b></div>{rows}' + (
        f'<div style="margin-top:4px"><b>What they share</b></div>{shared}' if shared else ""
    )


def _items(sentences: Sequence[str]) -> str:
    return "".join(f'<div style="border-left:3px solid {WARN};padding-left:8px;margin-top:4px">{text(s)}</div>' for s in sentences)


def _facts(e: Estimate) -> str:
    facts = [("method", e.method), ("seed", e.seed), *e.settings.items(), *e.diagnostics.items()]
    facts += [(name, value) for name, value in vars(e.provenance).items() if value]
    rows = "".join(
        f'<div><span style="{FAINT}">{text(name)}</span> <span style="{MONO};overflow-wrap:anywhere">'
        f"{text(number(value) if isinstance(value, float) else value)}</span></div>"
        for name, value in facts
        if value is not None
    )
    return f'<details style="margin-top:8px"><summary>Settings, diagnostics, provenance</summary>{rows}</details>'


def estimate(e: Estimate) -> str:
    """One estimate: the number, its interval, levels, triggers, warnings."""
    low, high = e.interval
    seen = e.p > 0
    main = f"p = {number(e.p)}" if seen else f"p &lt; {number(high)}"
    range_ = f"95 % interval {number(low)} to {number(high)}" if seen else "95 % confidence: the event was never seen"
    good = e.status == "ok"
    work = f"{e.cost.forward_equivalents:,.0f} forward passes' work, {e.cost.seconds:.1f} s"
    return (
        f'<div class="deeptail-estimate" style="{BOX}">'
        f'<div style="{FAINT}">{text(e.question)}</div>'
        f'<div><span style="font-size:22px;font-weight:600">{main}</span> &nbsp;{range_}</div>'
        f"<div>{_badge(e.status, GOOD if good else WARN)}{_badge(e.guarantee, 'currentColor')}"
        f'{_badge(e.method, "currentColor") if e.method else ""}<span style="{FAINT}">{work}</span></div>'
        f"{_items(e.warnings)}{interval_svg(e)}{levels_svg(e)}{_triggers(e)}{_facts(e)}</div>"
    )


def _row(e: Estimate, axis: LogAxis) -> str:
    low, high = e.interval
    a, b = axis.x(low), axis.x(high)
    dot = f'<circle cx="{axis.x(e.p):.1f}" cy="8" r="4" fill="{ACCENT}"/>' if e.p > 0 else ""
    bar = _svg(
        16,
        f"{number(low)} to {number(high)}",
        f'<rect x="{a:.1f}" y="4" width="{max(b - a, 1):.1f}" height="8" rx="4" fill="{ACCENT}" fill-opacity=".35">'
        f"<title>{number(low)} to {number(high)}</title></rect>{dot}",
        width=axis.right + 12,
    )
    asked = f"{e.event} {' '.join(json.dumps(t, ensure_ascii=False) for t in e.target_text)}"
    p = number(e.p) if e.p > 0 else f"&lt; {number(high)}"
    state = text(e.status) + (f' <span title="{text(" ".join(e.warnings))}" style="color:{WARN}">!</span>' if e.warnings else "")
    cell = 'style="text-align:left;white-space:nowrap;padding:1px 10px 1px 0"'
    return f"<tr><td {cell}>{text(asked)}</td><td {cell}>{p}</td><td {cell}>{bar}</td><td {cell}>{state}</td></tr>"


def estimates(es: EstimateList) -> str:
    """A table with a bar for each interval, on one axis."""
    axis = LogAxis([v for e in es for v in (e.p, *e.interval)], 12.0, 308.0)
    rows = "".join(_row(e, axis) for e in es[:SHOWN])
    scale = _svg(24, "scale", axis.svg(6, 0), width=axis.right + 12)
    more = f"<div>and {len(es) - SHOWN} more: to_pandas()</div>" if len(es) > SHOWN else ""
    return (
        f'<div class="deeptail-estimates" style="{BOX}"><table style="border-collapse:collapse;color:inherit;font:inherit">'
        f"<tr><th></th><th></th><td>{scale}</td><th></th></tr>{rows}</table>{more}</div>"
    )
