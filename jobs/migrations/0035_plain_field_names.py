"""Name two fields by the glossary. Their columns stay, so no statement runs."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("jobs", "0034_gateway_sessions")]

    operations = [
        migrations.AlterField(
            model_name="job",
            name="is_owed",
            field=models.BooleanField(db_column="is_owed", default=False),
        ),
        migrations.RenameField(model_name="job", old_name="is_owed", new_name="has_claim"),
        migrations.AlterField(
            model_name="logwatch",
            name="told",
            field=models.JSONField(db_column="told", default=dict),
        ),
        migrations.RenameField(model_name="logwatch", old_name="told", new_name="reported"),
    ]
