"""/{project}/jobs/new."""

from __future__ import annotations

import re

import pytest

from jobs.actions.jobs.submit import check_spec
from jobs.models import Job, Project
from jobs.web.jobs.examples import EXAMPLES
from jobs.web.jobs.spec_form import spec_fields
from tests.factories import make_actor, make_job, make_project, set_default_queue
from tests.integration.web.conftest import SOURCE, text_of

PATH = "/rl/jobs/new"


def test_a_good_spec_becomes_a_job_and_leads_to_its_page(member, project):
    response = member.post(PATH, {"source": SOURCE.replace("\n", "\r\n"), "key": "k1"})
    job = Job.objects.get()
    assert response["Location"] == f"/rl/jobs/{job.pk}"
    assert (job.name, job.spec_source, job.submitted_by) == ("hello", SOURCE, member.user)


def test_two_clicks_are_one_job(member):
    places = {member.post(PATH, {"source": SOURCE, "key": "k1"})["Location"] for _ in range(2)}
    assert len(places) == 1
    assert Job.objects.count() == 1


def test_a_key_that_cannot_be_stored_is_no_key(member):
    assert member.post(PATH, {"source": SOURCE, "key": "\0"}).status_code == 302


def test_every_error_is_listed_with_its_line_and_the_text_is_kept(member):
    source = "name: hello\nnum_node: 2\nrun: echo\nnonsense: 1\n"
    response = member.post(PATH, {"source": source})
    html = response.content.decode()
    assert response.status_code == 422
    assert "2 problems" in text_of(response)
    assert 'data-line="2"' in html and 'data-line="4"' in html
    assert '<li class="bad">2</li>' in html
    assert "num_node: 2" in html
    assert not Job.objects.exists()


def test_what_a_user_typed_is_text_never_markup(member):
    response = member.post(PATH, {"source": "name: </textarea><script>alert(1)</script>\n"})
    assert "<script>alert" not in response.content.decode()


def test_it_opens_with_an_example_or_with_the_spec_of_an_earlier_job(member, project):
    job = make_job(project, spec_source="name: earlier\nrun: echo\n")
    assert "name: count-primes" in member.text(PATH)
    assert "name: two-nodes" in member.text(PATH, example="plain")
    assert "name: earlier" in member.text(PATH, **{"from": job.pk})
    assert member.get(PATH, {"from": "999999"}).status_code == 404
    assert member.get(PATH, {"from": "9" * 40}).status_code == 404


def test_the_text_of_a_refused_edit_is_kept_when_the_earlier_job_is_gone(member, project):
    response = member.post(PATH, {"source": "nam: x\nrun: echo\n", "from": "999999"})
    assert response.status_code == 422
    assert "nam: x" in response.content.decode()


def test_the_editor_completes_the_names_that_its_reader_may_see(project, member, viewer):
    project.secrets.create(name="HF_TOKEN", ciphertext=b"-")
    make_project("other").secrets.create(name="OTHER", ciphertext=b"-")
    make_job(project, name="earlier")
    set_default_queue()
    found = member.get("/rl/jobs/editor-words").json()
    names = found["names"]
    assert (names["queues"], names["jobs"], names["secrets"]) == (
        ["default"], ["earlier"], ["HF_TOKEN"],
    )  # fmt: skip
    assert "torchrun" in names["templates"]
    assert viewer.get("/rl/jobs/editor-words").json()["names"]["secrets"] == []
    portal = found["job"]["properties"]["portal"]["properties"]
    assert portal["queue"]["x-names"] == "queues"
    assert portal["if_dependency_fails"]["x-choices"] == ["fail", "hold", "run"]


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda example: example.slug)
def test_every_example_is_accepted_as_it_stands(project, example):
    assert check_spec(make_actor(project), project, example.source).spec.run


def test_a_viewer_may_not_submit(viewer, stranger):
    assert viewer.get(PATH).status_code == 403
    assert viewer.post(PATH, {"source": SOURCE}).status_code == 403
    assert stranger.post(PATH, {"source": SOURCE}).status_code == 404
    assert not Job.objects.exists()


def edited(member, source, **change):
    return member.post("/rl/jobs/edit", {"source": source, **change}).json()


@pytest.mark.feature("S2.1")
def test_the_form_writes_fields_into_the_text_and_reads_them_back(member):
    answer = edited(member, "# mine\nrun: x  # kept\n", path="portal.priority", value="80")
    assert answer["source"] == "# mine\nrun: x  # kept\nportal:\n  priority: 80\n"
    assert answer["values"]["portal.priority"] == "80"
    assert answer["values"]["run"] == "x"
    for path, value, written in (
        ("resources.use_spot", "true", "resources:\n  use_spot: true\n"),
        ("num_nodes", "many", "num_nodes: many\n"),
        ("workdir.url", "https://x.org/a.git", "workdir:\n  url: https://x.org/a.git\n"),
    ):
        text = edited(member, "run: x\n", path=path, value=value)["source"]
        assert text == f"run: x\n{written}"
        assert edited(member, text)["values"][path] == value
        assert edited(member, text, path=path, value="")["source"] == "run: x\n"
    assert "valid YAML" in edited(member, "run: [", path="name", value="x")["problem"]


VARIABLES = """\
envs:
  LR: 1
  TOKEN: null
  KEY: |
    one
    two: 2
  LIST: '[1, 2]'
  QUOTED: '"quoted"'
  BLANKS: ' x '
run: x
"""


def test_a_changed_variable_leaves_the_others_as_they_were_written(member):
    answer = edited(member, VARIABLES, path="envs", row="LR", value="2")
    assert answer["source"] == VARIABLES.replace("LR: 1", "LR: 2")
    assert answer["values"]["envs"] == [
        ["LR", "2"],
        ["TOKEN", None],
        ["KEY", "one\ntwo: 2\n"],
        ["LIST", "[1, 2]"],
        ["QUOTED", '"quoted"'],
        ["BLANKS", " x "],
    ]
    for change, was, becomes in (
        ({"row": "KEY", "name": "PEM"}, "KEY", "PEM"),
        ({"row": "BLANKS", "value": "x"}, "' x '", "x"),
        ({"row": "TOKEN", "value": "null"}, "TOKEN: null", 'TOKEN: "null"'),
        ({"row": "QUOTED"}, "  QUOTED: '\"quoted\"'\n", ""),
        ({"name": "NEW", "value": "a\r\nb"}, "run", "  NEW: |-\n    a\n    b\nrun"),
    ):
        text = edited(member, VARIABLES, path="envs", **change)["source"]
        assert text == VARIABLES.replace(was, becomes, 1)
    taken = edited(member, VARIABLES, path="envs", name="LR", value="3")
    assert taken["problem"] == "Edit the text instead: LR is there already."


@pytest.mark.parametrize(
    ("path", "changes", "written"),
    [
        (
            "portal.array",
            [{"name": "lr", "value": '["1e-4", 1.10]'}, {"name": "seed", "value": "[1, 2]"}],
            'portal:\n  array:\n    lr: ["1e-4", 1.10]\n    seed: [1, 2]\n',
        ),
        (
            "portal.depends_on",
            [{"value": "7"}, {"value": "{job: warm, after: end}"}, {"row": "0", "value": "train"}],
            "portal:\n  depends_on:\n    - train\n    - {job: warm, after: end}\n",
        ),
        ("secrets", [{"name": "A"}, {"name": "B", "value": ""}], "secrets:\n  - A\n  - B\n"),
        (
            "secrets",
            [{"name": "A"}, {"name": "B"}, {"row": "B", "value": "X"}, {"row": "A", "name": "C"}],
            "secrets:\n  C: null\n  B: X\n",
        ),
    ],
)
def test_rows_are_written_one_by_one_and_the_last_one_takes_the_key(member, path, changes, written):
    text = "run: x\n"
    for change in changes:
        text = edited(member, text, path=path, **change)["source"]
    assert text == f"run: x\n{written}"
    for row, (name, _) in reversed([*enumerate(edited(member, text)["values"][path])]):
        text = edited(member, text, path=path, row=name or row)["source"]
    assert text == "run: x\n"


def test_the_first_example_stays_valid_when_its_nodes_and_meshes_are_set(project, member):
    texts = [edited(member, EXAMPLES[0].source, path="num_nodes", value=each) for each in "13"]
    texts += [edited(member, EXAMPLES[0].source, path="portal.meshes", name="a", value="2")]
    for text in (each["source"] for each in texts):
        assert check_spec(make_actor(project), project, text).spec.run


def test_nodes_and_meshes_are_kept_equal_by_the_form(project, member):
    text = "run: x\nnum_nodes: 2\nportal:\n  meshes: {trainers: 2}  # of them\n"
    fewer = edited(member, text, path="num_nodes", value="1")
    assert (fewer["values"]["num_nodes"], fewer["values"]["portal.meshes"]) == (
        "1",
        [["trainers", "1"]],
    )
    assert "# of them" in fewer["source"]
    more = edited(member, text, path="portal.meshes", name="others", value="3")
    assert more["values"]["num_nodes"] == "5"
    plain = edited(member, text, path="portal.meshes", row="trainers")["source"]
    assert plain == "run: x\nnum_nodes: 2\n"
    for source in (fewer["source"], more["source"], plain):
        assert check_spec(make_actor(project), project, source).spec.run


def test_a_git_repository_is_read_into_its_own_fields_and_written_from_each_field(member):
    url = "https://github.com/acme/rl"
    mapping = f"run: x\nworkdir:\n  url: {url}\n  ref: v1\n"

    def shown(answer):
        return [answer["values"][key] for key in ("workdir", "workdir.url", "workdir.ref")]

    for text in (mapping, f"run: x\nworkdir: {url}@v1\n"):
        assert shown(edited(member, text)) == ["", url, "v1"]
    typed = edited(member, "run: x\n", path="workdir", value=f"{url}@v1")
    assert (typed["source"], shown(typed)) == (mapping, ["", url, "v1"])
    later = edited(member, f"run: x\nworkdir: {url}\n", path="workdir.ref", value="v1")
    assert (later["source"], shown(later)) == (mapping, ["", url, "v1"])
    folder = edited(member, mapping, path="workdir", value="./code")
    assert shown(folder) == ["./code", "", ""]


@pytest.mark.feature("S2.8")
def test_the_form_is_filled_from_the_project_files_of_an_uploaded_folder(member):
    upload = f"upload:{'a' * 64}"
    pyproject = '[tool.mportal]\nname = "ppo"\nresources.accelerators = "A100:8"\n'
    files = {"portal.yaml": "# ours\nnum_nodes: 2\n", "pyproject.toml": pyproject}
    answer = edited(member, "name: example\nrun: echo\n", workdir=upload, **files)
    assert answer["source"].startswith("# ours\nnum_nodes: 2\n")
    shown = {path: value for path, value in answer["values"].items() if value}
    assert shown == {
        "name": "ppo",
        "num_nodes": "2",
        "resources.accelerators": "A100:8",
        "run": "echo",
        "workdir": upload,
    }
    wrong = edited(member, "run: x\n", workdir=upload, **{"portal.yaml": "\nnum_node: 2\n"})
    said = "portal.yaml:2: There is no key 'num_node'. Did you mean num_nodes?"
    assert wrong == {"problem": said}
    several = edited(member, "run: x\n", workdir=upload, **{"portal.yaml": "run: a\n---\nrun: b\n"})
    assert several["problem"].startswith("portal.yaml: It has several jobs")


@pytest.mark.timeout(30)
def test_the_form_says_why_it_does_not_take_a_text_or_a_value(member):
    bomb = "".join(f"a{n + 1}: &a{n + 1} [*a{n}, *a{n}]\n" for n in range(40))
    for source, change, problem in (
        (f"a0: &a0 x\n{bomb}envs: *a40\n", {}, "10,000 values"),
        ("envs: {[a]: 1}\n", {}, "Keys must be plain words"),
        ("just text", {"path": "name", "value": "x"}, "not a mapping"),
        ("run: a\n---\nrun: b\n", {}, "The form edits single jobs"),
        (
            "run: x\n",
            {"path": "portal.array", "name": "a", "value": "[{[a]: 1}]"},
            "not valid YAML",
        ),
        ("envs: {A: 1, A: 2}\n", {}, "envs.A is given twice"),
        *(
            (
                "run: x\nportal: {depends_on: [a, b]}\n",
                {"path": "portal.depends_on", "row": row, "value": "x"},
                "no such row",
            )
            for row in ("-1", "2", "a", "9" * 5_000)
        ),
    ):
        assert problem in edited(member, source, **change)["problem"]


@pytest.mark.feature("S2.1")
def test_the_fields_of_the_form_are_explained_by_the_schema(member):
    page = member.text("/rl/jobs/new")
    assert "Higher comes first among the jobs of the project." in page
    for _, fields in spec_fields():
        assert all(field.about for field in fields)


def test_empty_fields_show_the_defaults_of_the_project_and_mark_examples(project, member):
    def placeholder(label):
        page = member.get(PATH).content.decode()
        return re.search(rf'id="f-{label}"[^>]*placeholder="([^"]*)"', page)[1]

    assert placeholder("num_nodes") == "1"
    assert placeholder("portal-max_duration") == "unlimited"
    assert placeholder("resources-infra") == "local"
    assert placeholder("resources-accelerators") == "such as H100:8"
    Project.objects.filter(pk=project.pk).update(max_duration_s=7200)
    assert placeholder("portal-max_duration") == "2 h"


def test_a_plan_shows_the_changes_and_who_comes_first(project, member):
    earlier = make_job(
        project, spec_source="name: a\nrun: one\n", priority=60, backend_name="local"
    )
    make_job(project, priority=10, backend_name="local")
    page = member.get("/rl/jobs/new", {"from": earlier.pk}).content.decode()
    assert f'name="from" value="{earlier.pk}"' in page
    change = {"source": "name: a\nrun: two\n", "from": str(earlier.pk)}
    text = text_of(member.post("/rl/jobs/plan", change))
    assert "-run: one +run: two" in text
    assert "If submitted now, queue default It starts with the next scheduling pass" in text
    assert "Position 2 of 3 in the queue." in text


def test_each_of_several_documents_has_its_plan_with_the_total_of_all(project, member):
    Project.objects.filter(pk=project.pk).update(max_duration_s=7200)
    source = "name: a\nrun: x\n---\nname: b\nrun: x\n"
    response = member.post("/rl/jobs/plan", {"source": source})
    text = text_of(response)
    assert response.content.decode().count("<h3>") == 2
    assert "It starts with the next scheduling pass" in text
    assert "It waits for a, submitted together with it." in text
    assert "At most $0 in total, for 2 jobs. They are submitted together, all or none." in text


def test_two_clicks_submit_several_documents_once(project, member):
    source = "name: a\nrun: x\n---\nname: b\nrun: x\n"
    for _ in range(2):
        response = member.post(PATH, {"source": source, "key": "k1"})
        assert response["Location"] == "/rl/jobs"
    assert [job.name for job in Job.objects.order_by("pk")] == ["a", "b"]


def test_a_plan_is_made_also_when_the_earlier_job_is_gone(project, member):
    gone = make_job(project).pk
    Job.objects.all().delete()
    response = member.post("/rl/jobs/plan", {"source": SOURCE, "from": gone})
    assert response.status_code == 200
    assert "If submitted now" in text_of(response)


def test_changes_are_shown_of_checked_texts_of_some_length_only(project, member):
    earlier = make_job(project, spec_source="run: x\n" + "# a\n" * 2_001)
    for source, words in (
        ("run: [", "Fix the problems"),
        ("name: a\nrun: x\n", "too long to show its changes"),
    ):
        text = text_of(member.post("/rl/jobs/plan", {"source": source, "from": earlier.pk}))
        assert words in text
        assert "Changes since job" not in text
