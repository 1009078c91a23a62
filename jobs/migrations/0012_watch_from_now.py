from django.db import migrations

# Attempts that run while the portal is brought up to date are watched from here on, not from their
# first line: what they have survived is no reason to end them.
BEGIN = """
INSERT INTO jobs_logwatch (attempt_id, next_line, told, no_retry_by, avoided, is_given_up)
SELECT head.attempt_id, head.next_line, '{}', '', '[]', false
FROM jobs_loghead AS head JOIN jobs_attempt AS attempt ON attempt.id = head.attempt_id
WHERE attempt.ended_at IS NULL
ON CONFLICT DO NOTHING
"""


class Migration(migrations.Migration):

    dependencies = [
        ('jobs', '0011_log_policies'),
    ]

    operations = [
        migrations.RunSQL(BEGIN, migrations.RunSQL.noop),
    ]
