from django.db import migrations, models

# Of words, unlike of objects, the database keeps statistics, and so uses the index for rare labels.
LABEL_WORDS = """
CREATE FUNCTION mportal_labels(jsonb) RETURNS text[]
LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE AS $$
    SELECT coalesce(array_agg(word), '{}') FROM (
        SELECT key AS word FROM jsonb_each_text($1)
        UNION ALL SELECT key || '=' || value FROM jsonb_each_text($1)
    ) AS words
$$;
CREATE INDEX job_by_label_word ON jobs_job USING gin (mportal_labels(labels));
"""
NO_LABEL_WORDS = "DROP INDEX job_by_label_word; DROP FUNCTION mportal_labels(jsonb);"


class Migration(migrations.Migration):

    dependencies = [
        ('jobs', '0044_templates'),
    ]

    operations = [
        migrations.RemoveIndex(
            model_name='job',
            name='job_by_label',
        ),
        migrations.RemoveIndex(
            model_name='job',
            name='job_by_reason',
        ),
        migrations.AddIndex(
            model_name='job',
            index=models.Index(condition=models.Q(models.Q(('stop_reason', ''), _negated=True), models.Q(('stop_reason', 'COMPLETED'), _negated=True)), fields=['project', 'stop_reason', '-id'], name='job_by_reason'),
        ),
        migrations.RunSQL(LABEL_WORDS, NO_LABEL_WORDS),
    ]
