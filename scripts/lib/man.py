#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Makes a manual page of a page in Markdown.

  scripts/lib/man.py docs/flashpachectl.md >flashpachectl.8

The first heading names both: "# flashpachectl(8): what it does". A code block before the second heading is the
synopsis. It knows the Markdown that these pages use: headings, paragraphs, lists, code blocks and tables. A row of a
table becomes a tagged paragraph; a column with a heading says that heading. It leaves out pictures.
"""

import re
import sys
from pathlib import Path

TITLE = re.compile(r"# (\S+)\((\d)\): (.*)")
BLOCK = re.compile(r"```\w*\n(?P<code>(?s:.*?))^```$|(?P<hashes>#+) (?P<heading>.*)|(?P<table>(?:^\|.*(?:\n|\Z))+)"
                   r"|(?P<item>- .*(?:\n  .*)*)|(?P<text>.+(?:\n(?!```|#|\||- ).+)*)", re.M)
LINK = re.compile(r"\[([^\]]*)\]\(([^)]*)\)")


def title(page):
    return TITLE.match(page.read_text()) if page.is_file() else None


def reference(link, folder):
    """A link to another manual page names that; a link to any other page is its text."""
    text, name = link.group(1), link.group(2).split("#")[0]
    found = title(folder / name) if name else None
    return f"{found.group(1)}({found.group(2)})" if found and text in (name, name.removesuffix(".md")) else text


def escaped(text):
    return text.replace("\\", "\\e").replace("-", "\\-")


def inline(text, folder):
    """Code is bold, and its hyphens are those that one types."""
    text = LINK.sub(lambda link: reference(link, folder), text.replace("\\|", "|"))
    parts = re.split(r"`([^`]*)`", text)
    return "".join(f"\\fB{escaped(part)}\\fP" if i % 2 else part.replace("\\", "\\e") for i, part in enumerate(parts))


def lines(text, folder):
    """A sentence a line; none may begin with what troff takes for a request."""
    for line in re.split(r"(?<=[^.][.!?]) ", inline(" ".join(text.split()), folder)):
        yield "\\&" + line if line[:1] in (".", "'") else line


def sentence(text):
    return text[:1].upper() + text[1:] + ("" if text[-1:] in ".!?:" else ".")


def cells(row):
    return [cell.strip() for cell in re.split(r"(?<!\\)\|", row.strip().strip("|"))]


def table(rows, folder):
    head = cells(rows[0])
    for row in rows[2:]:
        tag, *rest = cells(row)
        yield from (".TP", *lines(tag, folder))
        facts = [f"{name}: {cell}" for name, cell in zip(head[1:], rest) if name and cell]
        for text in facts + [cell for name, cell in zip(head[1:], rest) if cell and not name]:
            yield from lines(sentence(text), folder)


def code(text):
    return [".PP", ".RS 4", ".nf", *("\\&" + escaped(line) for line in text.splitlines()), ".fi", ".RE"]


def block(found, folder):
    if found["code"] is not None:
        yield from code(found["code"])
    elif found["heading"]:
        yield f".SH {found['heading'].upper()}" if len(found["hashes"]) == 2 else f".SS {inline(found['heading'], folder)}"
    elif found["table"]:
        yield from table(found["table"].splitlines(), folder)
    elif found["item"]:
        yield from (".IP \\(bu 2", *lines(found["item"][2:], folder))
    elif not found["text"].startswith("<picture>"):
        yield from (".PP", *lines(found["text"], folder))


def others(text, folder, own):
    """The manual pages that the page links to."""
    found = {title(folder / target.split("#")[0]) for _, target in LINK.findall(text) if target.split("#")[0].endswith(".md")}
    names = {f"\\fB{one.group(1)}\\fP({one.group(2)})" for one in found if one and one.group(1) != own}
    return [".SH SEE ALSO", *(",\n".join(sorted(names))).splitlines()] if names else []


def manual(page):
    text = page.read_text()
    name, section, purpose = TITLE.match(text).groups()
    blocks = list(BLOCK.finditer(text, text.index("\n") + 1))
    first = next((i for i, found in enumerate(blocks) if found["heading"]), len(blocks))
    synopsis = [found for found in blocks[:first] if found["code"] is not None]
    made = [f'.\\" Made of {page.name} by scripts/lib/man.py.', f'.TH {name.upper()} {section} "" Flashpache', ".nh", ".ad l",
            ".SH NAME", f"{name} \\- {inline(purpose, page.parent)}"]
    if synopsis:
        made += [".SH SYNOPSIS", *code(synopsis[0]["code"])]
    made.append(".SH DESCRIPTION")
    for found in blocks:
        if found not in synopsis:
            made += block(found, page.parent)
    return "\n".join([*made, *others(text, page.parent, name)]) + "\n"


if __name__ == "__main__":
    sys.stdout.write(manual(Path(sys.argv[1])))
