"""Pages from templates: the files beside this one, and what all of them share."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path
from typing import Any

import jinja2
from markupsafe import Markup, escape

from spmrl_bench import __version__

_FOLDER = Path(__file__).parent

#: Files that every page uses, by their address.
ASSETS = {"assets/site.css": "site.css", "assets/site.js": "site.js"}


def page(template: str, address: str, **content: Any) -> bytes:
    """A page from the template of a name.

    Args:
        template: its name without ``.html.jinja``.
        address: of the page, from the root of the site; links in it lead there over ``root``.
        content: what the template shows.
    """
    root = "../" * address.count("/")
    text = (
        _forms().get_template(f"{template}.html.jinja").render(root=root, here=address, **content)
    )
    return text.encode("utf-8", "replace")


def assets() -> dict[str, bytes]:
    """The content of :data:`ASSETS`."""
    return {address: (_FOLDER / name).read_bytes() for address, name in ASSETS.items()}


def web_address(text: str) -> str:
    """The text if it is an address of the web that a page may lead to; else empty."""
    return text if re.fullmatch(r"https?://[^\s\"'<>\\]+", text) else ""


def with_code(text: str) -> Markup:
    """Text in which what stands between backquotes is code."""
    return Markup(re.sub(r"`([^`]*)`", r"<code>\1</code>", str(escape(text))))


@cache
def _forms() -> jinja2.Environment:
    forms = jinja2.Environment(
        loader=jinja2.FileSystemLoader(_FOLDER),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=jinja2.StrictUndefined,
        keep_trailing_newline=True,
    )
    forms.filters |= {"web": web_address, "coded": with_code}
    forms.globals |= {"version": __version__}
    return forms
