"""Write values as YAML text with PyYAML's emitter, so that they read back as the same values.

JSON does not serve: YAML breaks lines at U+0085, U+2028 and U+2029 in quotes too, and reads
neither pairs of surrogates nor numbers such as 1e-05.
"""

from __future__ import annotations

import io
import math
from typing import Any

import yaml
from yaml.emitter import Emitter

from monarch_client.spec.nodes import plain_value

STEP = 2
_END = "\n...\n"


class _Dumper(yaml.SafeDumper):
    """A dumper that writes each text in double quotes, and values that occur twice twice."""

    def ignore_aliases(self, data: Any) -> bool:
        return True


def _quoted(dumper: yaml.SafeDumper, text: str) -> yaml.ScalarNode:
    return dumper.represent_scalar("tag:yaml.org,2002:str", str(text), style='"')


_Dumper.add_representer(str, _quoted)
# Also of their subclasses.
_Dumper.add_multi_representer(str, _quoted)
_Dumper.add_multi_representer(dict, _Dumper.represent_dict)
_Dumper.add_multi_representer(int, _Dumper.represent_int)
_Dumper.add_multi_representer(float, _Dumper.represent_float)


def in_one_line(value: Any) -> str:
    """Return a value in one line, texts in quotes."""
    text: str = yaml.dump(
        value,
        Dumper=_Dumper,
        default_flow_style=True,
        width=math.inf,
        allow_unicode=True,
        sort_keys=False,
    )
    return text.removesuffix(_END).removesuffix("\n")


def as_scalar(value: Any) -> str:
    """Return a value in one line, without quotes where YAML reads the text as it is."""
    return value if isinstance(value, str) and _is_plain(value) else in_one_line(value)


def as_block(text: str, column: int) -> str | None:
    """Return `text` as a literal block of a key or dash in this column, without its last line end.

    None: no block gives it back unchanged, whatever follows.
    """
    if not _fits_block(text):
        return None
    stream = io.StringIO()
    emitter = Emitter(stream, allow_unicode=True)
    emitter.best_indent = STEP
    emitter.indent = column + STEP
    emitter.write_literal(text)
    return stream.getvalue().removesuffix("\n")


def _is_plain(text: str) -> bool:
    try:
        is_same = yaml.safe_load(text) == text
    except (yaml.YAMLError, ValueError):
        return False
    return is_same and isinstance(plain_value(text), str)


def _fits_block(text: str) -> bool:
    """Whether a block holds the text: characters that every reader takes, and one end at most.

    After further line ends it would depend on what follows. libyaml refuses a tab at the begin.
    """
    is_printable = all(each.isprintable() or each in "\n\t" for each in text)
    has_lines = "\n" in text.lstrip("\n") and not text.endswith("\n\n")
    return is_printable and has_lines and text[0] != "\t"
