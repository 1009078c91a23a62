"""The rules of every cluster context: a class of tests for each backend has a `cluster`."""

from __future__ import annotations

import pytest

from monarch_client.context import ClusterContext, JobInfo, JobStatus, RuntimeEnv
from monarch_client.context.errors import JobNotFoundError
from tests.waiting import eventually

ENDED = {JobStatus.SUCCEEDED, JobStatus.FAILED, JobStatus.STOPPED}


class ClusterContract:
    """The tests; `timeout_s` is how long a job may take."""

    timeout_s = 20.0

    def info(self, cluster: ClusterContext, job_id: str) -> JobInfo:
        """Return one of the cluster's jobs."""
        return next(each for each in cluster.list_jobs() if each.id == job_id)

    def ended(self, cluster: ClusterContext, job_id: str) -> JobInfo:
        """Wait for the end of a job."""
        assert eventually(
            lambda: self.info(cluster, job_id).status in ENDED, timeout_s=self.timeout_s
        ), cluster.get_job_logs(job_id)
        return self.info(cluster, job_id)

    def test_two_jobs_that_succeed_are_listed_in_order(self, cluster):
        jobs = [cluster.create_job("exit 0"), cluster.create_job("true")]
        ends = [self.ended(cluster, job) for job in jobs]
        assert [each.status for each in ends] == [JobStatus.SUCCEEDED] * 2
        assert [each.id for each in cluster.list_jobs()] == jobs
        for end in ends:
            assert end.start_time is not None
            assert end.end_time is not None
            assert end.submission_time <= end.start_time <= end.end_time

    def test_logs_are_apart_and_the_script_sees_its_variables(self, cluster):
        env = RuntimeEnv(env={"GREETING": "it's me"})
        job = cluster.create_job('echo "$GREETING"; echo second; echo problem >&2', env)
        self.ended(cluster, job)
        assert cluster.get_job_logs(job) == ("it's me\nsecond\n", "problem\n")

    def test_a_job_whose_script_is_missing_fails(self, cluster):
        job = cluster.create_job("bash /no/such/script.sh")
        assert self.ended(cluster, job).status is JobStatus.FAILED
        assert "/no/such/script.sh" in cluster.get_job_logs(job)[1]

    def test_a_sleeping_job_is_stopped_and_then_removed(self, cluster):
        job = cluster.create_job("echo begun; sleep 600")
        assert self.info(cluster, job).status in {JobStatus.RUNNING, JobStatus.PENDING}
        assert self.info(cluster, job).end_time is None
        assert eventually(
            lambda: cluster.get_job_logs(job)[0] == "begun\n", timeout_s=self.timeout_s
        )
        cluster.delete_job(job)
        assert self.ended(cluster, job).status is JobStatus.STOPPED
        cluster.delete_job(job)
        assert job not in [each.id for each in cluster.list_jobs()]
        with pytest.raises(JobNotFoundError):
            cluster.get_job_logs(job)

    def test_an_unknown_job_is_not_deleted_and_has_no_log(self, cluster):
        for unknown in ("987654", "nothing"):
            cluster.delete_job(unknown)
            with pytest.raises(JobNotFoundError, match=unknown):
                cluster.get_job_logs(unknown)
