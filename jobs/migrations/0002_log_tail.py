import django.db.models.deletion
from django.db import migrations, models

CREATE = """
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

DROP = """
DROP TABLE jobs_logblock;
ALTER TABLE jobs_loghead RESET (fillfactor);
"""


class Migration(migrations.Migration):

    dependencies = [
        ('jobs', '0001_initial'),
    ]

    operations = [
        migrations.AddField(
            model_name='loghead',
            name='tail_bytes',
            field=models.BigIntegerField(default=0),
        ),
        migrations.SeparateDatabaseAndState(
            database_operations=[migrations.RunSQL(CREATE, DROP)],
            state_operations=[
                migrations.CreateModel(
                    name='LogBlock',
                    fields=[
                        ('pk', models.CompositePrimaryKey('attempt_id', 'first_line', 'created_at', blank=True, editable=False, primary_key=True, serialize=False)),
                        ('first_line', models.BigIntegerField()),
                        ('created_at', models.DateTimeField()),
                        ('line_count', models.PositiveIntegerField()),
                        ('raw_bytes', models.PositiveIntegerField()),
                        ('payload', models.BinaryField()),
                        ('attempt', models.ForeignKey(db_constraint=False, db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='log_blocks', to='jobs.attempt')),
                    ],
                    options={
                        'db_table': 'jobs_logblock',
                    },
                ),
            ],
        ),
    ]
