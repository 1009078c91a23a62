from django.db import migrations

# The trigger for changed and deleted rows does not see a TRUNCATE.
NO_TRUNCATE = """
CREATE TRIGGER no_truncate BEFORE TRUNCATE ON jobs_auditentry
    FOR EACH STATEMENT EXECUTE FUNCTION jobs_audit_is_append_only();
"""


class Migration(migrations.Migration):
    dependencies = [("jobs", "0052_gateway_session_browser")]

    operations = [migrations.RunSQL(NO_TRUNCATE, "DROP TRIGGER no_truncate ON jobs_auditentry;")]
