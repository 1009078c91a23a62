"""The whole schema, as one migration for new databases.

It replaces the 25 migrations before it: a database that has applied all of them takes this one for
applied, and nothing runs. A database that has applied only some of them must first be migrated by the
version of the portal that still has them.
"""

import django.contrib.auth.models
import django.contrib.auth.validators
import django.core.validators
import django.db.models.deletion
import django.utils.timezone
from django.conf import settings
from django.db import migrations, models

import jobs.ground.clock
import jobs.models.budget
import jobs.models.installation

SLUG = [django.core.validators.RegexValidator("\\A[a-z][a-z0-9-]{0,38}\\Z")]

STATUSES = [
    ("QUEUED", "Queued"),
    ("PROVISIONING", "Provisioning"),
    ("SETTING_UP", "Setting up"),
    ("RUNNING", "Running"),
    ("RECOVERING", "Recovering"),
    ("STOPPING", "Stopping"),
    ("SUCCEEDED", "Succeeded"),
    ("FAILED", "Failed"),
    ("CANCELLED", "Cancelled"),
]

STOP_REASONS = [
    ("COMPLETED", "Completed"),
    ("USER_CODE", "The program failed"),
    ("SETUP", "Setup failed"),
    ("NO_CAPACITY", "No capacity"),
    ("WORKER_LOST", "A worker was lost"),
    ("WORKER_NEVER_READY", "A worker never listened"),
    ("PYTHON_MISMATCH", "Python versions differ"),
    ("MONARCH", "Monarch reported a fault"),
    ("TIMEOUT", "Ran too long"),
    ("OOM", "Out of memory"),
    ("BUDGET", "Budget spent"),
    ("IDLE", "Idle"),
    ("CANCELLED_BY_USER", "Cancelled by a user"),
    ("PREEMPTED", "Preempted"),
    ("DEPENDENCY", "A dependency failed"),
    ("PARENT", "Its parent ended"),
    ("BACKEND", "The backend failed"),
    ("LOG_POLICY", "A line of its log ended it"),
]

LOG_BLOCKS = """
CREATE TABLE jobs_logblock (
    attempt_id bigint NOT NULL,
    first_line bigint NOT NULL,
    created_at timestamptz NOT NULL,
    line_count integer NOT NULL CHECK (line_count > 0),
    raw_bytes integer NOT NULL CHECK (raw_bytes > 0),
    payload bytea NOT NULL,
    PRIMARY KEY (attempt_id, first_line, created_at)
) PARTITION BY RANGE (created_at);

-- Days without a partition of their own; see jobs.logs.partitions.
CREATE TABLE jobs_logblock_default PARTITION OF jobs_logblock DEFAULT;

-- Payloads are compressed already.
ALTER TABLE jobs_logblock ALTER COLUMN payload SET STORAGE EXTERNAL;
ALTER TABLE jobs_logblock_default ALTER COLUMN payload SET STORAGE EXTERNAL;

-- Written with every batch of lines: room in the page keeps those updates off the indexes.
ALTER TABLE jobs_loghead SET (fillfactor = 40);
"""

NO_LOG_BLOCKS = """
DROP TABLE jobs_logblock;
ALTER TABLE jobs_loghead RESET (fillfactor);
"""


def make_first_queue(apps, schema_editor):
    """Add the queue of jobs that name none."""
    apps.get_model("jobs", "Queue").objects.get_or_create(name="default")


class Migration(migrations.Migration):
    replaces = [
        ("jobs", "0001_initial"),
        ("jobs", "0002_log_tail"),
        ("jobs", "0003_one_clock"),
        ("jobs", "0004_follow_lease"),
        ("jobs", "0005_skypilot"),
        ("jobs", "0006_handed_secrets"),
        ("jobs", "0007_host_metrics"),
        ("jobs", "0008_log_stores"),
        ("jobs", "0009_mesh_tree"),
        ("jobs", "0010_gpus_idle_since"),
        ("jobs", "0011_log_policies"),
        ("jobs", "0012_watch_from_now"),
        ("jobs", "0013_stack_dumps"),
        ("jobs", "0014_the_team_queue"),
        ("jobs", "0015_budgets"),
        ("jobs", "0016_schedules"),
        ("jobs", "0017_dependencies_and_arrays"),
        ("jobs", "0018_preemption"),
        ("jobs", "0019_money_quotas"),
        ("jobs", "0020_jobs_that_take_kept_clusters"),
        ("jobs", "0021_child_jobs"),
        ("jobs", "0022_owed_machines"),
        ("jobs", "0023_what_clusters_hold"),
        ("jobs", "0024_wider_prices"),
        ("jobs", "0025_count_gpus_again"),
    ]

    initial = True

    dependencies = [
        ("auth", "0012_alter_user_first_name_max_length"),
    ]

    operations = [
        migrations.CreateModel(
            name="Project",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("slug", models.CharField(max_length=39, unique=True, validators=SLUG)),
                ("name", models.CharField(max_length=100)),
                ("created_at", models.DateTimeField(default=jobs.ground.clock.now, editable=False)),
                ("max_duration_s", models.PositiveIntegerField(blank=True, null=True)),
                ("max_idle_minutes", models.PositiveIntegerField(blank=True, null=True)),
                (
                    "share_weight",
                    models.FloatField(
                        default=1.0, validators=[django.core.validators.MinValueValidator(0.001)]
                    ),
                ),
            ],
        ),
        migrations.CreateModel(
            name="User",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("password", models.CharField(max_length=128, verbose_name="password")),
                (
                    "last_login",
                    models.DateTimeField(blank=True, null=True, verbose_name="last login"),
                ),
                (
                    "is_superuser",
                    models.BooleanField(
                        default=False,
                        help_text="Designates that this user has all permissions without explicitly assigning them.",
                        verbose_name="superuser status",
                    ),
                ),
                (
                    "username",
                    models.CharField(
                        error_messages={"unique": "A user with that username already exists."},
                        help_text="Required. 150 characters or fewer. Letters, digits and @/./+/-/_ only.",
                        max_length=150,
                        unique=True,
                        validators=[django.contrib.auth.validators.UnicodeUsernameValidator()],
                        verbose_name="username",
                    ),
                ),
                (
                    "first_name",
                    models.CharField(blank=True, max_length=150, verbose_name="first name"),
                ),
                (
                    "last_name",
                    models.CharField(blank=True, max_length=150, verbose_name="last name"),
                ),
                (
                    "email",
                    models.EmailField(blank=True, max_length=254, verbose_name="email address"),
                ),
                (
                    "is_staff",
                    models.BooleanField(
                        default=False,
                        help_text="Designates whether the user can log into this admin site.",
                        verbose_name="staff status",
                    ),
                ),
                (
                    "is_active",
                    models.BooleanField(
                        default=True,
                        help_text="Designates whether this user should be treated as active. Unselect this instead of deleting accounts.",
                        verbose_name="active",
                    ),
                ),
                (
                    "date_joined",
                    models.DateTimeField(
                        default=django.utils.timezone.now, verbose_name="date joined"
                    ),
                ),
                (
                    "groups",
                    models.ManyToManyField(
                        blank=True,
                        help_text="The groups this user belongs to. A user will get all permissions granted to each of their groups.",
                        related_name="user_set",
                        related_query_name="user",
                        to="auth.group",
                        verbose_name="groups",
                    ),
                ),
                (
                    "user_permissions",
                    models.ManyToManyField(
                        blank=True,
                        help_text="Specific permissions for this user.",
                        related_name="user_set",
                        related_query_name="user",
                        to="auth.permission",
                        verbose_name="user permissions",
                    ),
                ),
            ],
            options={
                "verbose_name": "user",
                "verbose_name_plural": "users",
                "abstract": False,
            },
            managers=[
                ("objects", django.contrib.auth.models.UserManager()),
            ],
        ),
        migrations.CreateModel(
            name="Cluster",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("name", models.CharField(max_length=60, unique=True)),
                ("backend_name", models.CharField(max_length=30)),
                ("num_nodes", models.PositiveIntegerField()),
                (
                    "status",
                    models.CharField(
                        choices=[
                            ("STARTING", "Starting"),
                            ("UP", "Up"),
                            ("STOPPED", "Stopped, disks kept"),
                            ("STOPPING", "Going down"),
                            ("GONE", "Gone"),
                        ],
                        default="STARTING",
                        max_length=10,
                    ),
                ),
                ("backend_status", models.CharField(blank=True, max_length=200)),
                ("created_at", models.DateTimeField(default=jobs.ground.clock.now, editable=False)),
                ("release_requested_at", models.DateTimeField(blank=True, null=True)),
                ("gone_at", models.DateTimeField(blank=True, null=True)),
                (
                    "project",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="clusters",
                        to="jobs.project",
                    ),
                ),
                ("backend_key", models.CharField(blank=True, max_length=64)),
                ("billed_at", models.DateTimeField(blank=True, null=True)),
                ("fingerprint", models.CharField(blank=True, max_length=64)),
                ("idle_policy", models.JSONField(blank=True, default=dict)),
                ("idle_since", models.DateTimeField(blank=True, null=True)),
                ("infra", models.CharField(blank=True, max_length=100)),
                ("is_reusable", models.BooleanField(default=False)),
                ("resources", models.CharField(blank=True, max_length=200)),
                ("stopped_at", models.DateTimeField(blank=True, null=True)),
                (
                    "usd",
                    models.DecimalField(blank=True, decimal_places=6, max_digits=20, null=True),
                ),
                (
                    "usd_per_hour",
                    models.DecimalField(blank=True, decimal_places=6, max_digits=20, null=True),
                ),
                (
                    "started_by",
                    models.ForeignKey(
                        blank=True,
                        null=True,
                        on_delete=django.db.models.deletion.SET_NULL,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
                ("queue_name", models.CharField(default="default", max_length=60)),
                ("gpu_type", models.CharField(blank=True, max_length=80)),
                ("gpu_count", models.PositiveIntegerField(default=0)),
                ("price_key", models.CharField(blank=True, max_length=24)),
            ],
            options={
                "indexes": [
                    models.Index(
                        condition=models.Q(("status", "GONE"), _negated=True),
                        fields=["release_requested_at"],
                        name="cluster_existing",
                    ),
                    models.Index(fields=["project", "gone_at"], name="cluster_by_end"),
                ],
            },
        ),
        migrations.CreateModel(
            name="Installation",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                (
                    "key",
                    models.CharField(
                        default=jobs.models.installation._new_key, max_length=12, unique=True
                    ),
                ),
                ("created_at", models.DateTimeField(default=jobs.ground.clock.now, editable=False)),
            ],
            options={
                "constraints": [
                    models.CheckConstraint(condition=models.Q(("pk", 1)), name="one_installation")
                ],
            },
        ),
        migrations.CreateModel(
            name="Membership",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                (
                    "role",
                    models.CharField(
                        choices=[
                            ("viewer", "Viewer"),
                            ("member", "Member"),
                            ("maintainer", "Maintainer"),
                            ("admin", "Admin"),
                        ],
                        max_length=12,
                    ),
                ),
                (
                    "user",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="memberships",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
                (
                    "project",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="memberships",
                        to="jobs.project",
                    ),
                ),
            ],
            options={
                "constraints": [
                    models.UniqueConstraint(fields=("project", "user"), name="one_role_per_member")
                ],
            },
        ),
        migrations.CreateModel(
            name="ApiToken",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("name", models.CharField(max_length=100)),
                ("digest", models.CharField(max_length=64, unique=True)),
                ("read_only", models.BooleanField(default=False)),
                ("created_at", models.DateTimeField(default=jobs.ground.clock.now, editable=False)),
                ("expires_at", models.DateTimeField(blank=True, null=True)),
                ("last_used_at", models.DateTimeField(blank=True, null=True)),
                ("revoked_at", models.DateTimeField(blank=True, null=True)),
                (
                    "user",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="api_tokens",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
                (
                    "project",
                    models.ForeignKey(
                        blank=True,
                        null=True,
                        on_delete=django.db.models.deletion.CASCADE,
                        to="jobs.project",
                    ),
                ),
            ],
        ),
        migrations.CreateModel(
            name="SignInLink",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("digest", models.CharField(max_length=64, unique=True)),
                ("created_at", models.DateTimeField(default=jobs.ground.clock.now, editable=False)),
                ("expires_at", models.DateTimeField()),
                ("used_at", models.DateTimeField(blank=True, null=True)),
                (
                    "user",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE, to=settings.AUTH_USER_MODEL
                    ),
                ),
            ],
        ),
        migrations.CreateModel(
            name="Upload",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("digest", models.CharField(max_length=64)),
                ("size_bytes", models.BigIntegerField()),
                ("file_count", models.PositiveIntegerField()),
                ("created_at", models.DateTimeField(default=jobs.ground.clock.now, editable=False)),
                (
                    "created_by",
                    models.ForeignKey(
                        null=True,
                        on_delete=django.db.models.deletion.SET_NULL,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
                (
                    "project",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="uploads",
                        to="jobs.project",
                    ),
                ),
            ],
            options={
                "constraints": [
                    models.UniqueConstraint(
                        fields=("project", "digest"), name="one_upload_per_project"
                    )
                ],
            },
        ),
        migrations.CreateModel(
            name="StrayCluster",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("name", models.CharField(max_length=200)),
                ("backend_name", models.CharField(max_length=30)),
                (
                    "kind",
                    models.CharField(
                        choices=[
                            ("own", "This portal's name, but no row"),
                            ("foreign", "Somebody else's"),
                        ],
                        max_length=8,
                    ),
                ),
                ("first_seen_at", models.DateTimeField(default=jobs.ground.clock.now)),
                ("last_seen_at", models.DateTimeField(default=jobs.ground.clock.now)),
                ("seen", models.JSONField(default=dict)),
            ],
            options={
                "constraints": [
                    models.UniqueConstraint(
                        fields=("backend_name", "name"), name="one_stray_per_name"
                    )
                ],
            },
        ),
        migrations.CreateModel(
            name="ProjectSecret",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("name", models.CharField(max_length=100)),
                ("ciphertext", models.BinaryField()),
                ("created_at", models.DateTimeField(default=jobs.ground.clock.now, editable=False)),
                ("updated_at", models.DateTimeField(default=jobs.ground.clock.now)),
                (
                    "created_by",
                    models.ForeignKey(
                        null=True,
                        on_delete=django.db.models.deletion.SET_NULL,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
                (
                    "project",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="secrets",
                        to="jobs.project",
                    ),
                ),
                ("is_masked", models.BooleanField(default=True)),
                (
                    "updated_by",
                    models.ForeignKey(
                        null=True,
                        on_delete=django.db.models.deletion.SET_NULL,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
            ],
            options={
                "constraints": [
                    models.UniqueConstraint(fields=("project", "name"), name="one_secret_per_name")
                ],
            },
        ),
        migrations.CreateModel(
            name="PlanPass",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("number", models.BigIntegerField(default=0)),
            ],
        ),
        migrations.CreateModel(
            name="Pool",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("name", models.CharField(max_length=39, unique=True, validators=SLUG)),
                ("backend_name", models.CharField(max_length=30)),
                ("caps", models.JSONField(blank=True, default=dict)),
                ("patience_s", models.PositiveIntegerField(default=86400)),
                ("half_life_s", models.PositiveIntegerField(default=604800)),
                ("preempts_by_rank", models.BooleanField(default=False)),
                ("reclaim", models.BooleanField(default=False)),
            ],
        ),
        migrations.CreateModel(
            name="Queue",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("name", models.CharField(max_length=39, unique=True, validators=SLUG)),
                ("rank", models.IntegerField(default=0)),
                (
                    "pool",
                    models.ForeignKey(
                        blank=True,
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="queues",
                        to="jobs.pool",
                    ),
                ),
                ("preemptible", models.BooleanField(default=False)),
            ],
        ),
        migrations.CreateModel(
            name="Quota",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("per_person", models.BooleanField(default=False)),
                ("caps", models.JSONField(default=dict)),
                (
                    "pool",
                    models.ForeignKey(
                        blank=True,
                        null=True,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="quotas",
                        to="jobs.pool",
                    ),
                ),
                (
                    "project",
                    models.ForeignKey(
                        blank=True,
                        null=True,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="quotas",
                        to="jobs.project",
                    ),
                ),
                (
                    "queue",
                    models.ForeignKey(
                        blank=True,
                        null=True,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="quotas",
                        to="jobs.queue",
                    ),
                ),
                (
                    "user",
                    models.ForeignKey(
                        blank=True,
                        null=True,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="quotas",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
                ("nominal", models.JSONField(blank=True, default=dict)),
            ],
            options={
                "constraints": [
                    models.UniqueConstraint(
                        fields=("project", "user", "queue", "pool", "per_person"),
                        name="one_quota_of_each",
                        nulls_distinct=False,
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            ("project__isnull", True), ("queue__isnull", True), _connector="XOR"
                        ),
                        name="quota_of_a_project_or_a_queue",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            ("per_person", False),
                            models.Q(("project__isnull", False), ("user__isnull", True)),
                            _connector="OR",
                        ),
                        name="each_person_is_of_a_project",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            ("user__isnull", True), ("project__isnull", False), _connector="OR"
                        ),
                        name="person_is_of_a_project",
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="UseAccount",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("pool", models.CharField(max_length=60)),
                ("unit_hours", models.FloatField(default=0.0)),
                ("at", models.DateTimeField()),
                (
                    "project",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="use",
                        to="jobs.project",
                    ),
                ),
                (
                    "user",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="use",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
            ],
            options={
                "constraints": [
                    models.UniqueConstraint(
                        fields=("pool", "project", "user"), name="one_account_of_each_person"
                    )
                ],
            },
        ),
        migrations.CreateModel(
            name="Budget",
            fields=[
                (
                    "project",
                    models.OneToOneField(
                        on_delete=django.db.models.deletion.CASCADE,
                        primary_key=True,
                        related_name="budget",
                        serialize=False,
                        to="jobs.project",
                    ),
                ),
                ("usd", models.DecimalField(decimal_places=2, max_digits=12)),
                (
                    "on_spent",
                    models.CharField(
                        choices=[
                            ("warn", "Only say so"),
                            ("hold", "Start no further job"),
                            ("stop", "Stop what runs as well"),
                        ],
                        default="hold",
                        max_length=4,
                    ),
                ),
                ("warn_at", models.JSONField(default=jobs.models.budget._warns_at)),
                ("set_at", models.DateTimeField(default=jobs.ground.clock.now)),
                (
                    "set_by",
                    models.ForeignKey(
                        null=True,
                        on_delete=django.db.models.deletion.SET_NULL,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
            ],
            options={
                "constraints": [
                    models.CheckConstraint(
                        condition=models.Q(("usd__gt", 0)), name="budget_above_nothing"
                    )
                ],
            },
        ),
        migrations.CreateModel(
            name="BudgetNotice",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("month", models.DateField()),
                ("threshold", models.PositiveSmallIntegerField()),
                ("usd", models.DecimalField(decimal_places=6, max_digits=20)),
                ("budget_usd", models.DecimalField(decimal_places=2, max_digits=12)),
                ("at", models.DateTimeField(default=jobs.ground.clock.now, editable=False)),
                (
                    "project",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="budget_notices",
                        to="jobs.project",
                    ),
                ),
            ],
            options={
                "constraints": [
                    models.UniqueConstraint(
                        fields=("project", "month", "threshold"), name="one_notice_per_threshold"
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="Schedule",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("name", models.CharField(max_length=60)),
                ("spec", models.JSONField()),
                ("spec_source", models.TextField(blank=True)),
                ("cron", models.CharField(max_length=100)),
                ("zone", models.CharField(default="UTC", max_length=64)),
                (
                    "overlap",
                    models.CharField(
                        choices=[
                            ("allow", "Run beside it"),
                            ("skip", "Leave this time out"),
                            ("replace", "Cancel it, and run"),
                        ],
                        default="skip",
                        max_length=8,
                    ),
                ),
                (
                    "catch_up",
                    models.CharField(
                        choices=[
                            ("none", "Leave them out"),
                            ("latest", "Run once for all of them"),
                            ("all", "Run for each of them"),
                        ],
                        default="latest",
                        max_length=8,
                    ),
                ),
                ("paused", models.BooleanField(default=False)),
                ("message", models.TextField(blank=True)),
                ("next_at", models.DateTimeField(blank=True, null=True)),
                ("revision", models.PositiveIntegerField(default=1)),
                ("created_at", models.DateTimeField(default=jobs.ground.clock.now, editable=False)),
                ("updated_at", models.DateTimeField(default=jobs.ground.clock.now)),
                (
                    "owner",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="schedules",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
                (
                    "project",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="schedules",
                        to="jobs.project",
                    ),
                ),
            ],
            options={
                "indexes": [
                    models.Index(
                        condition=models.Q(("next_at__isnull", False)),
                        fields=["next_at"],
                        name="schedule_due",
                    ),
                ],
                "constraints": [
                    models.UniqueConstraint(
                        fields=("project", "name"), name="one_schedule_per_name"
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            ("paused", False), ("next_at__isnull", True), _connector="OR"
                        ),
                        name="paused_schedule_is_never_due",
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="JobArray",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("name", models.CharField(max_length=100)),
                ("source", models.TextField(blank=True)),
                ("values", models.JSONField(default=list)),
                ("size", models.PositiveIntegerField()),
                ("max_parallel", models.PositiveIntegerField(blank=True, null=True)),
                ("created_at", models.DateTimeField(default=jobs.ground.clock.now, editable=False)),
                (
                    "project",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="arrays",
                        to="jobs.project",
                    ),
                ),
                (
                    "submitted_by",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="arrays",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
            ],
            options={
                "indexes": [models.Index(fields=["project", "name", "-id"], name="array_by_name")],
            },
        ),
        migrations.CreateModel(
            name="Job",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("name", models.CharField(max_length=100)),
                (
                    "kind",
                    models.CharField(
                        choices=[("monarch", "Monarch job"), ("plain", "Plain job")], max_length=10
                    ),
                ),
                ("spec", models.JSONField()),
                ("spec_source", models.TextField(blank=True)),
                ("num_nodes", models.PositiveIntegerField(default=1)),
                ("backend_name", models.CharField(max_length=30)),
                ("queue_name", models.CharField(default="default", max_length=60)),
                ("priority", models.IntegerField(default=50)),
                ("status", models.CharField(choices=STATUSES, default="QUEUED", max_length=14)),
                ("held", models.BooleanField(default=False)),
                (
                    "wait_reason",
                    models.CharField(
                        blank=True,
                        choices=[
                            ("HELD", "Held by a user"),
                            ("DEPENDENCY", "Waits for another job"),
                            ("PARALLEL", "Waits for others of its array"),
                            ("QUOTA", "Over a quota"),
                            ("CAPACITY", "No free capacity"),
                            ("BUDGET", "Over a budget"),
                            ("SCHEDULE", "Waits for its time"),
                            ("BACKOFF", "Tries again shortly"),
                            ("PREEMPTED", "Preempted, starts again"),
                        ],
                        max_length=12,
                    ),
                ),
                ("stop_reason", models.CharField(blank=True, choices=STOP_REASONS, max_length=20)),
                ("message", models.TextField(blank=True)),
                ("hint", models.TextField(blank=True)),
                ("exit_code", models.IntegerField(blank=True, null=True)),
                ("failure_count", models.PositiveIntegerField(default=0)),
                ("recovery_count", models.PositiveIntegerField(default=0)),
                ("next_try_at", models.DateTimeField(blank=True, null=True)),
                ("created_at", models.DateTimeField(default=jobs.ground.clock.now, editable=False)),
                ("started_at", models.DateTimeField(blank=True, null=True)),
                ("stopping_at", models.DateTimeField(blank=True, null=True)),
                ("ended_at", models.DateTimeField(blank=True, null=True)),
                (
                    "rerun_of",
                    models.ForeignKey(
                        blank=True,
                        null=True,
                        on_delete=django.db.models.deletion.SET_NULL,
                        to="jobs.job",
                    ),
                ),
                (
                    "submitted_by",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="jobs",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
                (
                    "project",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="jobs",
                        to="jobs.project",
                    ),
                ),
                ("extended_s", models.PositiveIntegerField(default=0)),
                ("duration_s", models.PositiveIntegerField(blank=True, null=True)),
                ("gpu_count", models.PositiveIntegerField(default=0)),
                ("gpu_type", models.CharField(blank=True, max_length=80)),
                ("group_limit", models.PositiveIntegerField(default=1)),
                ("group_name", models.CharField(blank=True, max_length=60)),
                ("array_index", models.PositiveIntegerField(blank=True, null=True)),
                ("array_values", models.JSONField(blank=True, default=dict)),
                (
                    "array",
                    models.ForeignKey(
                        blank=True,
                        null=True,
                        on_delete=django.db.models.deletion.SET_NULL,
                        related_name="jobs",
                        to="jobs.jobarray",
                    ),
                ),
                (
                    "preempted_by",
                    models.ForeignKey(
                        blank=True,
                        null=True,
                        on_delete=django.db.models.deletion.SET_NULL,
                        related_name="preempted",
                        to="jobs.job",
                    ),
                ),
                ("preemptible", models.BooleanField(default=False)),
                ("price_key", models.CharField(blank=True, max_length=24)),
                ("depth", models.PositiveSmallIntegerField(default=0)),
                ("detached", models.BooleanField(default=False)),
                (
                    "parent",
                    models.ForeignKey(
                        blank=True,
                        null=True,
                        on_delete=django.db.models.deletion.SET_NULL,
                        related_name="children",
                        to="jobs.job",
                    ),
                ),
                ("parent_attempt", models.PositiveIntegerField(blank=True, null=True)),
                ("parent_number", models.PositiveBigIntegerField(blank=True, null=True)),
                ("is_owed", models.BooleanField(default=False)),
                ("fingerprint", models.CharField(blank=True, max_length=64)),
            ],
            options={
                "indexes": [
                    models.Index(fields=["project", "-id"], name="job_table"),
                    models.Index(fields=["project", "status", "-id"], name="job_table_by_status"),
                    models.Index(
                        condition=models.Q(("status", "QUEUED")),
                        fields=["-priority", "id"],
                        name="job_queue",
                    ),
                    models.Index(
                        condition=models.Q(
                            ("status__in", ["CANCELLED", "FAILED", "SUCCEEDED"]), _negated=True
                        ),
                        fields=["status", "id"],
                        name="job_unfinished",
                    ),
                    models.Index(
                        condition=models.Q(("array__isnull", False)),
                        fields=["array", "array_index", "-id"],
                        name="job_of_array",
                    ),
                    models.Index(fields=["project", "name", "-id"], name="job_by_name"),
                    models.Index(
                        condition=models.Q(
                            ("status", "QUEUED"),
                            models.Q(
                                ("spec__portal__has_key", "reuse"),
                                ("spec__portal__has_key", "cluster"),
                                _connector="OR",
                            ),
                        ),
                        fields=["id"],
                        name="job_takes_kept",
                    ),
                ],
                "constraints": [
                    models.CheckConstraint(
                        condition=models.Q(
                            models.Q(
                                ("status__in", ["CANCELLED", "FAILED", "SUCCEEDED"]), _negated=True
                            ),
                            ("ended_at__isnull", False),
                            _connector="OR",
                        ),
                        name="final_job_has_an_end",
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="Attempt",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("number", models.PositiveIntegerField()),
                ("token_digest", models.CharField(max_length=64, unique=True)),
                ("created_at", models.DateTimeField(default=jobs.ground.clock.now, editable=False)),
                ("contacted_at", models.DateTimeField(blank=True, null=True)),
                ("run_started_at", models.DateTimeField(blank=True, null=True)),
                ("last_seen_at", models.DateTimeField(blank=True, null=True)),
                ("ended_at", models.DateTimeField(blank=True, null=True)),
                ("stop_reason", models.CharField(blank=True, choices=STOP_REASONS, max_length=20)),
                ("message", models.TextField(blank=True)),
                ("hint", models.TextField(blank=True)),
                ("exit_code", models.IntegerField(blank=True, null=True)),
                (
                    "cluster",
                    models.ForeignKey(
                        blank=True,
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="attempts",
                        to="jobs.cluster",
                    ),
                ),
                (
                    "job",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="attempts",
                        to="jobs.job",
                    ),
                ),
                (
                    "carrier",
                    models.CharField(
                        blank=True,
                        choices=[
                            ("push", "Pushed by the runner"),
                            ("pull", "Fetched by the portal"),
                        ],
                        max_length=4,
                    ),
                ),
                ("diagnosis", models.JSONField(blank=True, default=dict)),
                (
                    "usd",
                    models.DecimalField(blank=True, decimal_places=6, max_digits=20, null=True),
                ),
            ],
            options={
                "constraints": [
                    models.UniqueConstraint(
                        fields=("job", "number"), name="one_attempt_per_number"
                    ),
                    models.UniqueConstraint(
                        condition=models.Q(("ended_at", None)),
                        fields=("job",),
                        name="one_open_attempt",
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="LogHead",
            fields=[
                (
                    "attempt",
                    models.OneToOneField(
                        on_delete=django.db.models.deletion.CASCADE,
                        primary_key=True,
                        related_name="log_head",
                        serialize=False,
                        to="jobs.attempt",
                    ),
                ),
                ("next_line", models.BigIntegerField(default=1)),
                ("sealed_before", models.BigIntegerField(default=1)),
                ("acked", models.JSONField(default=dict)),
                ("raw_bytes", models.BigIntegerField(default=0)),
                ("tail_bytes", models.BigIntegerField(default=0)),
                ("removed_at", models.DateTimeField(blank=True, null=True)),
            ],
        ),
        migrations.CreateModel(
            name="JobEvent",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                (
                    "kind",
                    models.CharField(
                        choices=[("status", "Status"), ("action", "Action"), ("note", "Note")],
                        max_length=8,
                    ),
                ),
                ("verb", models.CharField(blank=True, max_length=40)),
                ("old_status", models.CharField(blank=True, choices=STATUSES, max_length=14)),
                ("new_status", models.CharField(blank=True, choices=STATUSES, max_length=14)),
                ("reason", models.CharField(blank=True, max_length=20)),
                ("message", models.TextField(blank=True)),
                ("source", models.CharField(blank=True, max_length=60)),
                ("at", models.DateTimeField(default=jobs.ground.clock.now, editable=False)),
                (
                    "actor",
                    models.ForeignKey(
                        null=True,
                        on_delete=django.db.models.deletion.SET_NULL,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
                (
                    "attempt",
                    models.ForeignKey(
                        blank=True,
                        null=True,
                        on_delete=django.db.models.deletion.CASCADE,
                        to="jobs.attempt",
                    ),
                ),
                (
                    "job",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="events",
                        to="jobs.job",
                    ),
                ),
                ("line", models.BigIntegerField(blank=True, null=True)),
            ],
            options={
                "indexes": [models.Index(fields=["job", "id"], name="job_history")],
            },
        ),
        migrations.CreateModel(
            name="LogChunk",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("first_line", models.BigIntegerField()),
                ("line_count", models.PositiveIntegerField()),
                ("first_at", models.DateTimeField()),
                ("last_at", models.DateTimeField()),
                ("blob_name", models.CharField(max_length=200)),
                ("raw_bytes", models.PositiveIntegerField()),
                ("stored_bytes", models.PositiveIntegerField()),
                ("created_at", models.DateTimeField(default=jobs.ground.clock.now, editable=False)),
                (
                    "attempt",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="log_chunks",
                        to="jobs.attempt",
                    ),
                ),
                (
                    "store",
                    models.CharField(
                        choices=[
                            ("files", "Files of the portal's machine"),
                            ("s3", "A bucket of S3"),
                        ],
                        db_default="files",
                        default="files",
                        max_length=8,
                    ),
                ),
            ],
            options={
                "constraints": [
                    models.UniqueConstraint(
                        fields=("attempt", "first_line"), name="one_chunk_per_line"
                    )
                ],
            },
        ),
        migrations.CreateModel(
            name="IdempotencyKey",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("key", models.CharField(max_length=255)),
                ("body_digest", models.CharField(max_length=64)),
                ("created_at", models.DateTimeField(default=jobs.ground.clock.now, editable=False)),
                (
                    "user",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE, to=settings.AUTH_USER_MODEL
                    ),
                ),
                (
                    "job",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE, related_name="+", to="jobs.job"
                    ),
                ),
                (
                    "project",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE, to="jobs.project"
                    ),
                ),
                ("job_ids", models.JSONField(default=list)),
            ],
            options={
                "constraints": [
                    models.UniqueConstraint(
                        fields=("user", "project", "key"), name="one_job_per_key"
                    )
                ],
            },
        ),
        migrations.CreateModel(
            name="Worker",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("rank", models.PositiveIntegerField()),
                ("mesh", models.CharField(blank=True, max_length=60)),
                ("address", models.CharField(blank=True, max_length=200)),
                (
                    "status",
                    models.CharField(
                        choices=[
                            ("PENDING", "Pending"),
                            ("SETTING_UP", "Setting up"),
                            ("READY", "Listening"),
                            ("RUNNING", "Running"),
                            ("EXITED", "Exited"),
                            ("LOST", "Lost"),
                            ("UNKNOWN", "Unknown"),
                        ],
                        default="PENDING",
                        max_length=12,
                    ),
                ),
                ("python", models.CharField(blank=True, max_length=20)),
                ("pid", models.PositiveIntegerField(blank=True, null=True)),
                ("exit_code", models.IntegerField(blank=True, null=True)),
                ("detail", models.CharField(blank=True, max_length=500)),
                ("ready_at", models.DateTimeField(blank=True, null=True)),
                ("ended_at", models.DateTimeField(blank=True, null=True)),
                (
                    "attempt",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="workers",
                        to="jobs.attempt",
                    ),
                ),
                ("host", models.CharField(blank=True, db_default="", default="", max_length=100)),
            ],
            options={
                "constraints": [
                    models.UniqueConstraint(fields=("attempt", "rank"), name="one_worker_per_rank")
                ],
            },
        ),
        migrations.CreateModel(
            name="AttemptStage",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                (
                    "name",
                    models.CharField(
                        choices=[
                            ("launch", "Launch"),
                            ("setup", "Setup"),
                            ("workers", "Workers listen"),
                            ("run", "Run"),
                            ("teardown", "Tear down"),
                        ],
                        max_length=10,
                    ),
                ),
                ("started_at", models.DateTimeField()),
                ("ended_at", models.DateTimeField(blank=True, null=True)),
                ("detail", models.CharField(blank=True, max_length=500)),
                ("failure", models.CharField(blank=True, max_length=500)),
                (
                    "attempt",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="stages",
                        to="jobs.attempt",
                    ),
                ),
            ],
            options={
                "constraints": [
                    models.UniqueConstraint(fields=("attempt", "name"), name="one_row_per_stage")
                ],
            },
        ),
        migrations.SeparateDatabaseAndState(
            database_operations=[migrations.RunSQL(LOG_BLOCKS, NO_LOG_BLOCKS)],
            state_operations=[
                migrations.CreateModel(
                    name="LogBlock",
                    fields=[
                        (
                            "pk",
                            models.CompositePrimaryKey(
                                "attempt_id",
                                "first_line",
                                "created_at",
                                blank=True,
                                editable=False,
                                primary_key=True,
                                serialize=False,
                            ),
                        ),
                        ("first_line", models.BigIntegerField()),
                        ("created_at", models.DateTimeField()),
                        ("line_count", models.PositiveIntegerField()),
                        ("raw_bytes", models.PositiveIntegerField()),
                        ("payload", models.BinaryField()),
                        (
                            "attempt",
                            models.ForeignKey(
                                db_constraint=False,
                                db_index=False,
                                on_delete=django.db.models.deletion.CASCADE,
                                related_name="log_blocks",
                                to="jobs.attempt",
                            ),
                        ),
                    ],
                    options={
                        "db_table": "jobs_logblock",
                    },
                ),
            ],
        ),
        migrations.CreateModel(
            name="FollowLease",
            fields=[
                (
                    "attempt",
                    models.OneToOneField(
                        on_delete=django.db.models.deletion.CASCADE,
                        primary_key=True,
                        related_name="follow_lease",
                        serialize=False,
                        to="jobs.attempt",
                    ),
                ),
                ("owner", models.CharField(max_length=32)),
                ("expires_at", models.DateTimeField()),
            ],
        ),
        migrations.CreateModel(
            name="HandedSecrets",
            fields=[
                (
                    "attempt",
                    models.OneToOneField(
                        on_delete=django.db.models.deletion.CASCADE,
                        primary_key=True,
                        related_name="handed_secrets",
                        serialize=False,
                        to="jobs.attempt",
                    ),
                ),
                ("sealed", models.BinaryField()),
                ("created_at", models.DateTimeField(default=jobs.ground.clock.now, editable=False)),
                ("open_ends", models.JSONField(blank=True, default=dict)),
            ],
            options={
                "verbose_name_plural": "handed secrets",
            },
        ),
        migrations.CreateModel(
            name="HostMetrics",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("rank", models.PositiveIntegerField()),
                ("at", models.DateTimeField()),
                ("latest", models.JSONField()),
                ("recent", models.JSONField(default=list)),
                ("history", models.JSONField(default=list)),
                ("step_s", models.FloatField(default=0)),
                (
                    "attempt",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="host_metrics",
                        to="jobs.attempt",
                    ),
                ),
                ("gpus_idle_since", models.DateTimeField(blank=True, null=True)),
            ],
            options={
                "verbose_name_plural": "host metrics",
                "constraints": [
                    models.UniqueConstraint(
                        fields=("attempt", "rank"), name="one_host_metrics_per_rank"
                    )
                ],
            },
        ),
        migrations.CreateModel(
            name="MeshTree",
            fields=[
                (
                    "attempt",
                    models.OneToOneField(
                        on_delete=django.db.models.deletion.CASCADE,
                        primary_key=True,
                        related_name="mesh_tree",
                        serialize=False,
                        to="jobs.attempt",
                    ),
                ),
                ("at", models.DateTimeField()),
                ("latest", models.JSONField()),
                ("changes", models.JSONField(default=list)),
            ],
        ),
        migrations.CreateModel(
            name="LogWatch",
            fields=[
                (
                    "attempt",
                    models.OneToOneField(
                        on_delete=django.db.models.deletion.CASCADE,
                        primary_key=True,
                        related_name="log_watch",
                        serialize=False,
                        to="jobs.attempt",
                    ),
                ),
                ("next_line", models.BigIntegerField(default=1)),
                ("told", models.JSONField(default=dict)),
                ("no_retry_by", models.CharField(blank=True, max_length=60)),
                ("avoided", models.JSONField(default=list)),
                ("is_given_up", models.BooleanField(default=False)),
            ],
        ),
        migrations.CreateModel(
            name="StackDump",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("rank", models.PositiveIntegerField()),
                ("pid", models.PositiveIntegerField(blank=True, null=True)),
                ("asked_at", models.DateTimeField(default=jobs.ground.clock.now, editable=False)),
                ("ended_at", models.DateTimeField(blank=True, null=True)),
                (
                    "state",
                    models.CharField(
                        choices=[("asked", "Asked"), ("done", "Done"), ("failed", "Failed")],
                        default="asked",
                        max_length=6,
                    ),
                ),
                ("why", models.TextField(blank=True)),
                ("processes", models.JSONField(default=list)),
                ("left_out", models.PositiveIntegerField(default=0)),
                (
                    "asked_by",
                    models.ForeignKey(
                        null=True,
                        on_delete=django.db.models.deletion.SET_NULL,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
                (
                    "attempt",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="stack_dumps",
                        to="jobs.attempt",
                    ),
                ),
            ],
            options={
                "constraints": [
                    models.UniqueConstraint(
                        condition=models.Q(("state", "asked")),
                        fields=("attempt", "rank"),
                        name="one_open_stack_dump",
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="ScheduleRun",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("slot", models.DateTimeField()),
                ("is_manual", models.BooleanField(default=False)),
                (
                    "outcome",
                    models.CharField(
                        choices=[
                            ("submitted", "Submitted"),
                            ("skipped", "Left out: a job had not ended"),
                            ("missed", "Missed"),
                            ("failed", "Could not be submitted"),
                        ],
                        max_length=10,
                    ),
                ),
                ("message", models.TextField(blank=True)),
                ("created_at", models.DateTimeField(default=jobs.ground.clock.now, editable=False)),
                (
                    "job",
                    models.OneToOneField(
                        blank=True,
                        null=True,
                        on_delete=django.db.models.deletion.SET_NULL,
                        related_name="schedule_run",
                        to="jobs.job",
                    ),
                ),
                (
                    "schedule",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="runs",
                        to="jobs.schedule",
                    ),
                ),
            ],
            options={
                "constraints": [
                    models.UniqueConstraint(fields=("schedule", "slot"), name="one_run_per_slot")
                ],
            },
        ),
        migrations.CreateModel(
            name="JobDependency",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("needs_number", models.BigIntegerField()),
                ("needs_name", models.CharField(max_length=100)),
                (
                    "after",
                    models.CharField(
                        choices=[("success", "to succeed"), ("end", "to end")],
                        default="success",
                        max_length=7,
                    ),
                ),
                ("ended_as", models.CharField(blank=True, choices=STATUSES, max_length=14)),
                ("waived", models.BooleanField(default=False)),
                ("noted", models.BooleanField(default=False)),
                (
                    "job",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="dependencies",
                        to="jobs.job",
                    ),
                ),
                (
                    "needs",
                    models.ForeignKey(
                        null=True,
                        on_delete=django.db.models.deletion.SET_NULL,
                        related_name="dependants",
                        to="jobs.job",
                    ),
                ),
            ],
            options={
                "constraints": [
                    models.UniqueConstraint(
                        fields=("job", "needs_number"), name="one_row_per_dependency"
                    )
                ],
            },
        ),
        migrations.CreateModel(
            name="ExpectedPrice",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("backend_name", models.CharField(max_length=30)),
                ("price_key", models.CharField(max_length=24)),
                (
                    "usd_per_hour",
                    models.DecimalField(blank=True, decimal_places=6, max_digits=20, null=True),
                ),
                ("problem", models.TextField(blank=True)),
                ("tries", models.PositiveIntegerField(default=0)),
                ("ask_again_at", models.DateTimeField()),
            ],
            options={
                "constraints": [
                    models.UniqueConstraint(
                        fields=("backend_name", "price_key"), name="one_price_of_the_same_machines"
                    ),
                ],
            },
        ),
        migrations.RunPython(make_first_queue, migrations.RunPython.noop),
    ]
