"""Random trees of code for Hypothesis."""

from __future__ import annotations

from hypothesis import strategies as st

from tests.code_trees import Model, Script, To

NAMES = st.text(
    st.characters(codec="utf-8", exclude_characters="/", exclude_categories=["Cc", "Cs"]),
    min_size=1,
    max_size=8,
).filter(lambda name: name not in {".", ".."})
# Few different contents, so that files share blocks.
CONTENTS = st.binary(max_size=3)
LEAVES = st.one_of(
    CONTENTS, CONTENTS.map(Script), NAMES.map(lambda name: To(f"./{name}")), st.just(To("a/b"))
)


def _folders(below: st.SearchStrategy[Model]) -> st.SearchStrategy[Model]:
    entries = st.one_of(LEAVES, below)
    return st.dictionaries(NAMES, entries, max_size=4)


MODELS: st.SearchStrategy[Model] = st.recursive(st.just({}), _folders, max_leaves=6)
