"""How a page is looked at: as who uses a keyboard, a screen reader, or needs contrast does. Expressions of JavaScript,
and what they find.
"""

from typing import Any

from services.chromium import Page

FOCUSABLE = "a[href], button:not(:disabled), input, select, summary, [tabindex='0']"
PARTS = 12
"""A field for a time has several parts, and each can be reached."""
SEEN = f"""[...document.querySelectorAll("{FOCUSABLE}")].filter((each) =>
  each.checkVisibility() && !each.closest('dialog:not([open])'))"""
CONTRAST = """(() => {
  const channel = (value) => (value /= 255) <= 0.04045 ? value / 12.92 : ((value + 0.055) / 1.055) ** 2.4;
  const light = ([r, g, b]) => 0.2126 * channel(r) + 0.7152 * channel(g) + 0.0722 * channel(b);
  const parts = (text) => text.match(/[\\d.]+/g).map(Number);
  const ratio = (one, other) => {
    const [high, low] = [light(one), light(other)].sort((a, b) => b - a);
    return (high + 0.05) / (low + 0.05);
  };
  const ground = (element) => {
    const box = element.closest('svg .node')?.querySelector('.box');
    if (box) return parts(getComputedStyle(box).fill);
    for (let at = element; at; at = at.parentElement) {
      const found = parts(getComputedStyle(at).backgroundColor);
      if (found.length < 4 || found[3] > 0) return found;
    }
    return [255, 255, 255];
  };
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  const found = [];
  while (walker.nextNode()) {
    const element = walker.currentNode.parentElement;
    if (!walker.currentNode.data.trim() || !element.checkVisibility()) continue;
    if (element.closest('.unseen, :disabled, option')) continue;
    const style = getComputedStyle(element);
    const colour = parts(element instanceof SVGElement ? style.fill : style.color);
    const seen = ratio(colour, ground(element));
    if (seen < 4.5) found.push(`${walker.currentNode.data.trim().slice(0, 40)}: ${seen.toFixed(2)}`);
  }
  return found;
})()"""


def text_of(selector: str) -> str:
    return f"document.querySelector({selector!r})?.innerText"


def shows(selector: str, text: str) -> str:
    """That an element which the selector finds holds a text."""
    return f"[...document.querySelectorAll({selector!r})].some((each) => each.textContent.includes({text!r}))"


def click(page: Page, selector: str, text: str = "") -> None:
    """Presses what a pointer would, when it is there and can be pressed."""
    found = f"[...document.querySelectorAll({selector!r})].find((e) => e.textContent.includes({text!r}) && !e.disabled)"
    page.wait(f"!!{found}")
    page.value(f"{found}.click()")


def fill(page: Page, selector: str, text: str) -> None:
    page.value(f"document.querySelector({selector!r}).focus()")
    page.value(f"document.querySelector({selector!r}).select?.()")
    page.write(text)


def tabbed(page: Page) -> list[str]:
    """What the Tab key comes to, from the top of the page until it leaves it; each must show that it has the focus."""
    page.value("document.activeElement.blur(); window.reached = []; window.scrollTo(0, 0)")
    count = page.value(f"{SEEN}.length")
    for _ in range(count + PARTS):
        page.press("Tab")
        page.value("""(() => {
          const at = document.activeElement;
          if (at === document.body || reached.includes(at)) return;
          reached.push(at);
          const style = getComputedStyle(at);
          const box = at.querySelector?.('.box, .here');
          const marked = style.outlineStyle !== 'none' || (box && parseFloat(getComputedStyle(box).strokeWidth) > 2);
          if (!marked) at.setAttribute('data-unmarked', '');
        })()""")
    missed: list[str] = page.value(f"{SEEN}.filter((each) => !reached.includes(each)).map((each) => each.outerHTML)")
    unmarked: list[str] = page.value("[...document.querySelectorAll('[data-unmarked]')].map((each) => each.outerHTML)")
    return missed + [f"no focus shown: {each}" for each in unmarked]


CONTROLS = (
    "button",
    "link",
    "textbox",
    "combobox",
    "spinbutton",
    "slider",
    "DisclosureTriangle",
    "table",
    "region",
    "image",
)


def nameless(page: Page) -> list[str]:
    """Controls, regions and tables that a screen reader has no name for."""
    nodes: list[dict[str, Any]] = page.call("Accessibility.getFullAXTree")["nodes"]
    return [
        str(node.get("role"))
        for node in nodes
        if not node.get("ignored")
        and node.get("role", {}).get("value") in CONTROLS
        and not node.get("name", {}).get("value", "").strip()
    ]


def landmarks(page: Page) -> set[str]:
    nodes: list[dict[str, Any]] = page.call("Accessibility.getFullAXTree")["nodes"]
    roles = {node.get("role", {}).get("value") for node in nodes if not node.get("ignored")}
    return roles & {"banner", "navigation", "main", "contentinfo"}
