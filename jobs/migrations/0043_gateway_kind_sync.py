from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("jobs", "0042_job_labels_and_views")]

    operations = [
        migrations.AlterField(
            model_name="gatewaysession",
            name="kind",
            field=models.CharField(
                choices=[("attach", "Program"), ("ssh", "Shell"), ("sync", "Code")],
                db_default="attach",
                default="attach",
                max_length=8,
            ),
        ),
    ]
