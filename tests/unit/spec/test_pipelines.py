"""Documents of one file run one after another, as `sky jobs launch` runs them."""

from __future__ import annotations

import pytest
import yaml

from monarch_client.spec import InvalidSpecErrors, JobSpec
from monarch_client.spec.documents import documents_in


def read(text: str) -> list[tuple[str | None, list[str] | None]]:
    """Return the name of each specification in `text`, and what it depends on."""
    found = [yaml.safe_load(document.text) for document in documents_in(text)]
    return [(each.get("name"), (each.get("portal") or {}).get("depends_on")) for each in found]


def test_each_document_depends_on_the_one_before():
    text = "name: prep\nrun: a\n---\nname: train\nrun: b\nportal:\n  priority: 80\n---\nrun: c\n"
    assert read(text) == [("prep", None), ("train", ["prep"]), ("job-3", ["train"])]
    train = yaml.safe_load(documents_in(text)[1].text)
    assert (train["run"], train["portal"]["priority"]) == ("b", 80)


@pytest.mark.parametrize("header", ["name: my run", "name: my run\nexecution: serial"])
def test_a_header_names_the_documents_that_have_no_name(header):
    assert read(f"{header}\n---\nrun: a\n---\nname: b\nrun: b\n") == [
        ("my-run-1", None),
        ("b", ["my-run-1"]),
    ]
    assert read(f"{header}\n---\nrun: a\n") == [("my-run", None)]


def test_documents_of_one_name_get_names_of_their_own():
    assert read("name: a\nrun: x\n---\nname: a\nrun: y\n---\nname: a-1\nrun: z\n") == [
        ("a-1x", None),
        ("a-2", ["a-1x"]),
        ("a-1", ["a-2"]),
    ]


@pytest.mark.parametrize("depends_on", ["[a]", "[]"])
def test_a_file_that_says_its_order_itself_stays_as_it_is(depends_on):
    text = f"name: b\nrun: x\nportal: {{depends_on: {depends_on}}}\n---\nname: a\nrun: y\n"
    assert "".join(document.text for document in documents_in(text)) == text


@pytest.mark.parametrize("second", ["run: [", "- a list", "<<: {}", "!!python/object:x {}"])
def test_a_file_that_cannot_be_read_stays_as_it_is(second):
    text = f"run: x\n---\n{second}\n"
    assert "".join(document.text for document in documents_in(text)) == text


def test_documents_keep_their_lines():
    found = documents_in("name: p\n---\n# why\nrun: a\n---\nrun: b\n")
    assert [each.lines_before for each in found] == [1, 4]
    assert found[0].text.splitlines()[2] == "run: a"


@pytest.mark.parametrize(
    "second",
    ["name: b\nportal:\n  priority: 5\n  bogus: 1\nodd: 1\n", "portal:\n  bogus: 1\nodd: 1\n# end"],
)
def test_errors_name_the_lines_that_were_written(second):
    text = f"name: a\nrun: a\n---\nrun: b\n{second}"
    document = documents_in(text)[1]
    with pytest.raises(InvalidSpecErrors) as caught:
        JobSpec.parse(document.text)
    shown = [text.splitlines()[document.line_of(each.line) - 1] for each in caught.value.errors]
    assert sorted(shown) == ["  bogus: 1", "odd: 1"]


def test_a_job_group_is_refused_with_the_reason():
    header = documents_in("name: p\nexecution: parallel\n---\nrun: a\n")[0]
    with pytest.raises(InvalidSpecErrors, match="documents of one file run in order"):
        JobSpec.parse(header.text)
